"""Tensors → Memory → logits."""
