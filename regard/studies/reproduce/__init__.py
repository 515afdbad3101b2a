"""Experiments of the lectures and of papers, with their claims checked."""
