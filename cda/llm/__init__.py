"""Clients that ask models, behind `cda.contracts.model_client.ModelClient`: settings choose who answers for a role.

No module here is imported before a model is chosen, and a provider's library is imported in the one module that
wraps it.
"""
