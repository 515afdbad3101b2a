import itertools
import math
from dataclasses import replace

import pytest
import torch

from regard.search.beam import beam_search
from regard.search.candidates import DiverseCandidates, TopCandidates, build_candidates, distinct
from regard.search.hypothesis import Hypothesis
from regard.search.settings import SearchConfig

START, END, VOCAB = 9, 3, 4


def search(scorer, *limits, num_best=1, **settings):
    return beam_search(
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
        prefix: tuple((torch.randn(VOCAB, generator=generator) * 2).softmax(0).tolist())
        for length in range(depth)
        for prefix in itertools.product(range(3), repeat=length)
    }


def diverse_search(tree, limit, *, width, groups, diversity):
    """Finished hypotheses of diverse beam search without an early end, as in the paper."""
    beams = [[((), 0.0)] for _ in range(groups)]
    found = {}
    for length in range(1, limit + 1):
        counts = [0] * VOCAB
        for group in range(groups):
            longer = [
                ((*tokens, token), total + math.log(prob), counts[token])
                for tokens, total in beams[group]
                for token, prob in enumerate(tree[tokens])
            ]
            longer.sort(key=lambda one: -(one[1] - diversity * one[2]))
            active = [one for one in longer[: 2 * width] if one[0][-1] != END][:width]
            for rank, (tokens, total, _) in enumerate(longer[: 2 * width]):
                if rank < width and (tokens[-1] == END or length == limit):
                    found[tokens] = total
            beams[group] = [(tokens, total) for tokens, total, _ in active]
            for tokens, _, _ in active:
                counts[tokens[-1]] += 1
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("groups", "width"), [(2, 1), (2, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("diversity", [0.0, 0.5, 5.0])
def test_groups_equal_the_definition(tree_scorer, seed, groups, width, diversity):
    tree, beams = random_tree(seed), groups * width
    expected = diverse_search(tree, 5, width=width, groups=groups, diversity=diversity)
    settings = {"stopping": "none"} if width > 1 else {}
    (found,) = search(
        tree_scorer(tree),
        5,
        beams=beams,
        groups=groups,
        diversity=diversity,
        length_penalty=0.0,
        num_best=beams,
        **settings,
    )
    best = sorted(expected.values(), reverse=True)
    assert found[0].log_prob <= best[0] + 1e-5
    for one in found:
        assert one.log_prob == pytest.approx(expected[one.tokens], abs=1e-5)
    if width > 1:
        totals = [one.log_prob for one in found]
        assert totals == pytest.approx(best[: len(found)], abs=1e-5)
        assert len(found) == min(beams, len(expected))


@pytest.mark.parametrize("seed", range(3))
def test_groups_without_diversity_find_the_same(tree_scorer, seed):
    common = {"diversity": 0.0, "num_best": 2}
    (one,) = search(tree_scorer(random_tree(seed)), 5, beams=2, num_best=2)
    (three,) = search(tree_scorer(random_tree(seed)), 5, beams=6, groups=3, **common)
    assert three == one


def test_a_large_penalty_gives_groups_that_begin_differently(tree_scorer):
    (found,) = search(
        tree_scorer(random_tree(0)), 5, beams=3, groups=3, diversity=100.0, num_best=3
    )
    assert len({one.tokens[0] for one in found}) == 3


def test_groups_do_not_depend_on_other_sentences(tree_scorer):
    trees, limits = [random_tree(seed) for seed in range(3)], [5, 2, 4]
    common = {"beams": 4, "groups": 2, "num_best": 3}
    together = search(tree_scorer(*trees), *limits, **common)
    for tree, limit, found in zip(trees, limits, together, strict=True):
        assert search(tree_scorer(tree), limit, **common) == [found]


def test_totals_of_groups_are_log_probabilities_without_the_penalty():
    log_probs = torch.tensor([[0.4, 0.3, 0.2, 0.1]] * 2).log()
    chooser = DiverseCandidates(2, diversity=1.0, end=END)
    totals, indices = chooser.choose(torch.zeros(1, 2), log_probs)
    # The second group avoids the first token: 0.4 / e < 0.3.
    assert (indices % VOCAB).tolist() == [[0, 1, 1, 2]]
    assert (indices // VOCAB).tolist() == [[0, 1, 0, 1]]
    assert totals.exp().tolist()[0] == pytest.approx([0.4, 0.3, 0.3, 0.2])


def test_groups_keep_their_own_active_candidates():
    chooser = DiverseCandidates(2, diversity=1.0, end=END)
    is_end = torch.tensor([[True, False, False, False, False, False, True, True]])
    # Candidates of the groups: 0, 1, 4, 5 and 2, 3, 6, 7.
    assert chooser.keep(is_end).tolist() == [[1, 4, 2, 3]]


def test_one_group_takes_the_most_likely_candidates():
    chooser = build_candidates(SearchConfig(beams=2), end=END)
    assert isinstance(chooser, TopCandidates)
    log_probs = torch.tensor([[0.5, 0.3, 0.2, 0.0], [0.6, 0.4, 0.0, 0.0]]).log()
    totals, indices = chooser.choose(torch.tensor([[0.0, -0.1]]), log_probs)
    assert indices.tolist() == [[4, 0, 5, 1]]
    assert totals.tolist()[0] == sorted(totals.tolist()[0], reverse=True)
    assert chooser.keep(torch.tensor([[True, False, True, False]])).tolist() == [[1, 3]]


def test_duplicates_are_dropped():
    one = Hypothesis((1, END), -1.0, (-0.5, -0.5), -0.5)
    other = replace(one, tokens=(2, END))
    assert distinct([one, other, replace(one, value=-2.0)]) == [one, other]
