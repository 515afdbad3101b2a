import math

import pytest
import torch

from regard.models.interfaces import State

START, END = 9, 3

# Tokens A = 0, B = 1, C = 2 and the end token: next-token probabilities by prefix.
LECTURE_TREE = {
    (): (0.5, 0.2, 0.2, 0.1),
    (0,): (0.1, 0.4, 0.3, 0.2),
    (0, 1): (0.2, 0.2, 0.4, 0.2),
    (0, 1, 2): (0.0, 0.2, 0.2, 0.6),
    (0, 2): (0.1, 0.6, 0.2, 0.1),
    (0, 2, 1): (0.1, 0.2, 0.1, 0.6),
}
EVEN = (0.25, 0.25, 0.25, 0.25)


class TreeScorer:
    """Scorer from one probability tree per sentence; uniform outside the tree."""

    device = torch.device("cpu")

    def __init__(self, *trees):
        self.trees = trees
        self.batch = len(trees)
        self.num_steps = 0

    def start(self, beams, max_length=None):
        return State(
            per_source={}, per_hypothesis=torch.zeros(self.batch * beams, 0, dtype=torch.long)
        )

    def step(self, tokens, state):
        self.num_steps += 1
        prefixes = torch.cat([state.per_hypothesis, tokens[:, None]], dim=1)
        beams = len(prefixes) // self.batch
        rows = []
        for row, (first, *prefix) in enumerate(prefixes.tolist()):
            assert first == START
            probs = self.trees[row // beams].get(tuple(prefix), EVEN)
            rows.append([math.log(prob) if prob else -math.inf for prob in probs])
        return torch.tensor(rows), State({}, prefixes)


@pytest.fixture
def lecture_tree():
    return LECTURE_TREE


@pytest.fixture
def tree_scorer():
    return TreeScorer
