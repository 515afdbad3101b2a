"""Experiments on encoder–decoders: data, training, search, BLEU, sentence vectors."""
