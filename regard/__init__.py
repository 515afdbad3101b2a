"""Sequence-to-sequence learning with attention."""

__version__ = "0.1.0"
