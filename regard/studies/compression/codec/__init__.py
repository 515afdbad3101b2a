"""Learned image compression against JPEG."""
