"""Peers of the benchmark of decoding: other implementations with the weights of a run."""
