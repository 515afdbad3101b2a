"""Trainings that are followed: their logs, read as they grow."""
