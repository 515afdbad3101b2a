"""Benchmarks: throughput of training, compared with other implementations."""
