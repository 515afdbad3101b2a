"""Metrics of captions, images, boxes and pointing."""
