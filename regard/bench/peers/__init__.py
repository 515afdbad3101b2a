"""Other implementations of the same models, with a plain training loop."""
