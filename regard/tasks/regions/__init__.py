"""Segmentation and grounding: where something is in an image."""
