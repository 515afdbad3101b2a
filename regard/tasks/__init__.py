"""The only room that knows data and models."""
