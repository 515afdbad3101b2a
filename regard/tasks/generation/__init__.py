"""Generation: a source in, a target text out."""
