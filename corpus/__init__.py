"""The clause corpus: authored files, their compiled store, importers, and the shipped data."""

BUILTIN = "builtin"
"""The word that names all shipped data wherever a folder or file of authored policies is asked for."""
