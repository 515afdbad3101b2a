"""Commands that train, use and show a model."""
