"""Benchmarks: speed is measured here and never asserted in a test."""
