"""Experiments on learning: gradients, initialisation, learning rates, regularisation, depth."""
