"""Kernels of models in Triton."""
