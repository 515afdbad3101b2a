"""Metrics: strings or arrays → `Result`. Does not import torch."""
