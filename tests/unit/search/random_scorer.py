"""Scorer with a random distribution after each prefix, which depends on the sentence's seed."""

import math
import random

import torch

from regard.models.interfaces import State

WORDS = 3
END, START = 3, 4
SIZE = 6


def next_log_probs(seed, prefix):
    """Log-probabilities of three words and the end token; the others cannot be generated."""
    generator = random.Random(f"{seed} {prefix}")
    weights = [generator.random() ** 3 + 1e-3 for _ in range(WORDS + 1)]
    total = sum(weights)
    return [*(math.log(weight / total) for weight in weights), -math.inf, -math.inf]


class RandomScorer:
    """Scorer of sentences with seeds."""

    device = torch.device("cpu")

    def __init__(self, *seeds):
        self.seeds = seeds
        self.batch = len(seeds)
        self.num_steps = 0

    def start(self, beams, max_length=None):
        return State({}, torch.zeros(self.batch * beams, 0, dtype=torch.long))

    def step(self, tokens, state):
        self.num_steps += 1
        prefixes = torch.cat([state.per_hypothesis, tokens[:, None]], dim=1)
        beams = len(prefixes) // self.batch
        rows = [
            next_log_probs(self.seeds[row // beams], prefix[1:])
            for row, prefix in enumerate(prefixes.tolist())
        ]
        return torch.tensor(rows), State({}, prefixes)
