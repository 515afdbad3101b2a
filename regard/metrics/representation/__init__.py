"""Metrics of vectors and scores: neighbours, retrieval, ROC."""
