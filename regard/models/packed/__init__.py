"""Parts of models for inference on a CPU, with packed weights."""
