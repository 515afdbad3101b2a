"""Metrics of vectors: neighbours, retrieval, ROC."""
