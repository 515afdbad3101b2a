"""Parts on top of a memory or a decoder: pooling, copying, CTC, regions."""
