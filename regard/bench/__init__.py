"""Benchmarks: speed of training and decoding, compared with other implementations."""
