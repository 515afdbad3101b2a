"""Experiments of the lectures, reproduced."""
