"""Strings in, Result out; no torch."""
