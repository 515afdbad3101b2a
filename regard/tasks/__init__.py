"""Tasks: a model with its fields, from raw examples to predictions and results."""
