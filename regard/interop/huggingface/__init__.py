"""Hugging Face checkpoints: import and export."""
