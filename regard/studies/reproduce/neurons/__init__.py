"""Experiments before sequences: neurons, perceptrons, convolutions, recurrent memory."""
