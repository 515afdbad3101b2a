"""Experiments on models and applications: captions, pre-training, autoencoders."""
