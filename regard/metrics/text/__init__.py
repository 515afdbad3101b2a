"""Metrics of texts against texts."""
