"""Receivers of the events of training: progress display and TensorBoard."""
