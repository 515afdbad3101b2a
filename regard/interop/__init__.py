"""Import and export of models: Hugging Face checkpoints."""
