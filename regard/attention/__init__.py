"""Attention on plain tensors: scores, masks, weights, contexts."""
