"""Benchmark of the server: many connections at a time, on this machine only."""
