"""Heads of encoders and decoders: pooling, copying, CTC, regions."""
