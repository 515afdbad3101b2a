"""Prediction by a trained run: files, pipes, long recordings, several processes."""
