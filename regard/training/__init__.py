"""A loop that knows losses, not models."""
