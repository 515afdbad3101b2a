"""Metrics of captions, images, boxes, segmentations and attention pointing."""
