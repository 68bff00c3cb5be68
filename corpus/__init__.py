"""The clause corpus: authored files, their compiled store, importers, and the shipped data."""
