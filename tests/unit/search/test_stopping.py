import itertools
import math

import pytest
import torch

from regard.search.beam import beam_search
from regard.search.settings import SearchConfig
from regard.search.stopping import Stopping

START, END = 9, 3
NONE = -math.inf
DEPTH = 7


def random_tree(seed, depth=DEPTH):
    generator = torch.Generator().manual_seed(seed)
    return {
        prefix: tuple((torch.randn(4, generator=generator) * 1.5).softmax(0).tolist())
        for length in range(depth)
        for prefix in itertools.product(range(3), repeat=length)
    }


def search(scorer, *limits, num_best=1, **settings):
    return beam_search(
        scorer,
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(**settings),
        num_best=num_best,
    )


PENALTIES = [
    {"length_penalty": 0.0},
    {"length_penalty": 1.0},
    {"length_penalty": 2.0},
    {"length_penalty": 1.0, "length_penalty_kind": "gnmt"},
]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("num_best", [1, 2, 3])
def test_bound_finds_what_search_without_an_end_finds(tree_scorer, penalty, num_best):
    trees, limits = [random_tree(seed) for seed in range(6)], [7, 3, 5, 7, 2, 6]
    common = {"beams": 3, "num_best": num_best, **penalty}
    expected = search(tree_scorer(*trees), *limits, stopping="none", **common)
    assert search(tree_scorer(*trees), *limits, stopping="bound", **common) == expected


@pytest.mark.parametrize("groups", [1, 2])
def test_bound_takes_fewer_steps_than_search_without_an_end(tree_scorer, groups):
    ends = {prefix: (0.05, 0.03, 0.02, 0.9) for prefix in random_tree(0)}
    steps = {}
    for stopping in ("bound", "none"):
        scorer = tree_scorer(ends)
        common = {"beams": 2 * groups, "groups": groups, "length_penalty": 0.0}
        search(scorer, DEPTH, stopping=stopping, **common)
        steps[stopping] = scorer.num_steps
    assert steps["bound"] < steps["none"] == DEPTH


def test_bound_with_groups_finds_what_search_without_an_end_finds(tree_scorer):
    trees = [random_tree(seed) for seed in range(4)]
    common = {"beams": 4, "groups": 2, "num_best": 2, "diversity": 0.3}
    limits = [7, 4, 6, 7]
    expected = search(tree_scorer(*trees), *limits, stopping="none", **common)
    assert search(tree_scorer(*trees), *limits, stopping="bound", **common) == expected


def test_heuristic_may_miss_a_longer_hypothesis_that_bound_finds(tree_scorer):
    """Two hypotheses have ended, but a third one becomes better with its length."""
    sure, end = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)
    tree = {(): (0.4, 0.0, 0.0, 0.6), (0,): (0.5, 0.0, 0.0, 0.5)}
    tree |= {(0,) * length: sure for length in range(2, 6)} | {(0,) * 6: end}
    found = {
        stopping: search(tree_scorer(tree), 10, beams=2, stopping=stopping)[0][0].tokens
        for stopping in ("heuristic", "bound", "none")
    }
    assert found["heuristic"] == (END,)
    assert found["bound"] == found["none"] == ((0,) * 6 + (END,))


@pytest.mark.parametrize("stopping", ["heuristic", "bound", "none"])
def test_one_beam_ends_with_its_first_hypothesis(stopping):
    config = SearchConfig(beams=1, stopping=stopping)
    rule = Stopping.start(config, torch.tensor([9, 9]), num_best=1)
    finished, active = torch.tensor([[NONE], [-3.0]]), torch.tensor([[-0.1], [-0.1]])
    assert rule.update(finished, active, length=1)[1].tolist() == [False, True]


def test_every_group_must_have_ended():
    config = SearchConfig(beams=2, groups=2)
    rule = Stopping.start(config, torch.tensor([9]), num_best=1)
    active = torch.tensor([[-0.1, -0.2]])
    rule, is_done = rule.update(torch.tensor([[-1.0, NONE]]), active, length=1)
    assert not is_done.item()
    _, is_done = rule.update(torch.tensor([[NONE, -5.0]]), active, length=2)
    assert is_done.item()
