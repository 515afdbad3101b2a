"""Search for targets: greedy, beam search, sampling, constraints, forced decoding."""
