import itertools
import math

import pytest
import torch

from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.search.tree import current_recorder, record_trees

START, END = 9, 3


def find(scorer, *limits, num_best=1, **settings):
    return search(
        scorer,
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(**settings),
        num_best=num_best,
    )


def random_tree(seed, depth=5):
    generator = torch.Generator().manual_seed(seed)
    return {
        prefix: tuple((torch.randn(4, generator=generator) * 2).softmax(0).tolist())
        for length in range(depth)
        for prefix in itertools.product(range(3), repeat=length)
    }


TREES = [random_tree(seed) for seed in range(3)]
LIMITS = (5, 2, 4)
SETTINGS = [
    {"beams": 3, "num_best": 3},
    {"beams": 4, "groups": 2, "num_best": 2},
    {"beams": 3, "stopping": "bound"},
    {"beams": 3, "no_repeat_ngram": 1, "min_length": 2},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_recorded_search_equals_search(tree_scorer, settings):
    expected = find(tree_scorer(*TREES), *LIMITS, **settings)
    with record_trees() as recorder:
        assert find(tree_scorer(*TREES), *LIMITS, **settings) == expected
    assert recorder.num_searches == 1 and len(recorder.trees()) == 3


def test_recorded_greedy_search_equals_greedy_search(tree_scorer):
    expected = find(tree_scorer(*TREES), *LIMITS, beams=1)
    with record_trees() as recorder:
        found = find(tree_scorer(*TREES), *LIMITS, beams=1)
    for (ours,), (theirs,), nodes in zip(found, expected, recorder.trees(), strict=True):
        assert ours.tokens == theirs.tokens
        assert ours.step_log_probs == pytest.approx(theirs.step_log_probs)
        assert [node.tokens for node in nodes if node.is_finished] == [ours.tokens]


@pytest.mark.parametrize("settings", SETTINGS)
def test_nodes_have_the_probabilities_of_their_tokens(tree_scorer, settings):
    with record_trees() as recorder:
        found = find(tree_scorer(*TREES), *LIMITS, **settings)
    for tree, nodes, best in zip(TREES, recorder.trees(), found, strict=True):
        for index, node in enumerate(nodes):
            *before, token = node.tokens
            prob = tree[tuple(before)][token]
            assert math.exp(node.log_prob) == pytest.approx(prob, abs=1e-6)
            if node.parent is None:
                assert before == [] and node.total == node.log_prob
            else:
                parent = nodes[node.parent]
                assert node.parent < index and list(parent.tokens) == before
                assert not parent.is_finished
                assert node.total == pytest.approx(parent.total + node.log_prob, abs=1e-5)
        finished = {node.tokens: node.total for node in nodes if node.is_finished}
        assert {one.tokens for one in best} <= set(finished)
        assert all(one.log_prob == finished[one.tokens] for one in best)


def test_a_step_has_at_most_as_many_active_nodes_as_beams(tree_scorer):
    with record_trees() as recorder:
        find(tree_scorer(TREES[0]), 5, beams=3, stopping="none")
    (nodes,) = recorder.trees()
    for step in range(1, 6):
        active = [node for node in nodes if len(node.tokens) == step and not node.is_finished]
        assert len(active) == (3 if step < 5 else 0)


def test_outside_the_block_nothing_is_recorded(tree_scorer):
    assert current_recorder() is None
    with record_trees() as recorder:
        assert current_recorder() is recorder
    find(tree_scorer(TREES[0]), 5, beams=3)
    assert recorder.num_searches == 0


def test_searches_are_recorded_one_after_another(tree_scorer):
    with record_trees() as recorder:
        for tree in TREES[:2]:
            find(tree_scorer(tree), 5, beams=2)
    assert recorder.num_searches == 2
    assert recorder.trees(0) != recorder.trees(1)
