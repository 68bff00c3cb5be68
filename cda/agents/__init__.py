"""Roles that a model plays: what each is told, what it is shown, and the contract of its answer."""
