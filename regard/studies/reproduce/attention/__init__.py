"""Experiments on attention: pooling, scores, steps of a decoder, alignments."""
