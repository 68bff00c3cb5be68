"""Typed values and Protocols that several systems share; no behaviour beyond validation."""
