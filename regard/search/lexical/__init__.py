"""Phrases that targets must contain or must not contain."""
