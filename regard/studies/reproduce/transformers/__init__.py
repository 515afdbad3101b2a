"""Experiments on self-attention: masks, heads, positions, normalisation."""
