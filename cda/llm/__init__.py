"""Clients that ask models, behind `cda.contracts.model_client.ModelClient`: settings choose who answers for a role.

A provider's library is imported in the one module that wraps it, and that module only once a model of it is opened.
"""
