"""Models of other houses: read from their folders, and written into such folders."""
