"""Metrics of vectors: probes, neighbours, ROC."""
