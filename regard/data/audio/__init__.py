"""Audio: files, decoding, mel frames, cache and field."""
