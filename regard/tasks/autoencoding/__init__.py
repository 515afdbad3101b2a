"""Autoencoders of texts."""
