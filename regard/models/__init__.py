"""Models: encoders, decoders, heads, language models and generators."""
