"""Labelled queries over the shipped corpora, and the comparison of fusion rules and embedders on them."""
