"""Metrics of texts against reference texts."""
