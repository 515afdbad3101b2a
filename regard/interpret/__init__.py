"""Inspection of trained models: embeddings, nearest neighbours, linear probes, attention plots."""
