"""Benchmark of decoding: speed, latency and quality of searches, compared with other libraries."""
