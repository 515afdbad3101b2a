import itertools
import math

import pytest
import torch

from regard.core.errors import ConfigError
from regard.search import beam
from regard.search.beam import beam_search
from regard.search.greedy import greedy
from regard.search.settings import SearchConfig

START, END = 9, 3
SHORT_OR_CONFIDENT = {(): (0.6, 0.0, 0.0, 0.4), (0,): (0.15, 0.15, 0.15, 0.55)}


def search(scorer, *limits, num_best=1, **settings):
    return beam_search(
        scorer,
        start=START,
        end=END,
        max_lengths=torch.tensor(limits),
        config=SearchConfig(**settings),
        num_best=num_best,
    )


def random_tree(seed, depth=4):
    generator = torch.Generator().manual_seed(seed)
    return {
        prefix: tuple((torch.randn(4, generator=generator) * 2).softmax(0).tolist())
        for length in range(depth)
        for prefix in itertools.product(range(3), repeat=length)
    }


def every_sentence(tree, limit):
    """All sentences up to the limit with their log-probabilities, by enumeration."""
    found = {}
    for length in range(1, limit + 1):
        for words in itertools.product(range(4), repeat=length):
            is_complete = words[-1] == END or length == limit
            if END not in words[:-1] and is_complete:
                found[words] = sum(math.log(tree[words[:i]][words[i]]) for i in range(length))
    return found


def test_two_beams_find_what_greedy_misses(tree_scorer, lecture_tree):
    ((found,),) = search(tree_scorer(lecture_tree), 10, beams=2)
    assert found.tokens == (0, 2, 1, END)
    assert math.exp(found.log_prob) == pytest.approx(0.5 * 0.3 * 0.6 * 0.6)


def test_step_log_probs_are_those_of_the_result(tree_scorer, lecture_tree):
    ((found,),) = search(tree_scorer(lecture_tree), 10, beams=2)
    assert [math.exp(step) for step in found.step_log_probs] == pytest.approx([0.5, 0.3, 0.6, 0.6])


@pytest.mark.parametrize("seed", range(5))
def test_one_beam_is_greedy(tree_scorer, seed):
    trees = [random_tree(seed), random_tree(seed + 100)]
    ((first,), (second,)) = search(tree_scorer(*trees), 4, 3, beams=1)
    expected = greedy(tree_scorer(*trees), start=START, end=END, max_lengths=torch.tensor([4, 3]))
    assert [first.tokens, second.tokens] == [hypothesis.tokens for hypothesis in expected]


def test_without_length_normalisation_the_more_likely_wins(tree_scorer):
    ((found,),) = search(tree_scorer(SHORT_OR_CONFIDENT), 10, beams=2, length_penalty=0.0)
    assert found.tokens == (END,)
    assert found.value == pytest.approx(math.log(0.4))


def test_with_length_normalisation_the_higher_mean_wins(tree_scorer):
    ((found,),) = search(tree_scorer(SHORT_OR_CONFIDENT), 10, beams=2, length_penalty=1.0)
    assert found.tokens == (0, END)
    assert found.log_prob == pytest.approx(math.log(0.6 * 0.55))
    assert found.value == pytest.approx(math.log(0.6 * 0.55) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_best_are_sorted_and_distinct(tree_scorer, seed):
    (found,) = search(tree_scorer(random_tree(seed)), 4, beams=4, num_best=4)
    values = [hypothesis.value for hypothesis in found]
    assert values == sorted(values, reverse=True)
    assert len({hypothesis.tokens for hypothesis in found}) == len(found) == 4


def test_smaller_num_best_returns_the_first_of_more(tree_scorer):
    (four,) = search(tree_scorer(random_tree(1)), 4, beams=4, num_best=4)
    (two,) = search(tree_scorer(random_tree(1)), 4, beams=4, num_best=2)
    assert two == four[:2]


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_wide_beam_is_exhaustive(tree_scorer, seed, length_penalty):
    tree = random_tree(seed)
    expected = every_sentence(tree, limit=4)
    width = len(expected)
    (found,) = search(
        tree_scorer(tree), 4, beams=width, num_best=width, length_penalty=length_penalty
    )
    assert {hypothesis.tokens for hypothesis in found} == set(expected)
    for hypothesis in found:
        assert hypothesis.log_prob == pytest.approx(expected[hypothesis.tokens], abs=1e-5)
    best = max(expected, key=lambda words: expected[words] / len(words) ** length_penalty)
    assert found[0].tokens == best


def test_each_sentence_has_its_own_limit(tree_scorer):
    never = {prefix: (0.5, 0.3, 0.2, 0.0) for prefix in random_tree(0)}
    found = search(tree_scorer(never, never), 2, 4, beams=2)
    assert [len(best.tokens) for (best,) in found] == [2, 4]


@pytest.mark.parametrize("seed", range(5))
def test_result_does_not_depend_on_other_sentences(tree_scorer, seed):
    trees, limits = [random_tree(seed + i) for i in range(3)], [4, 1, 3]
    together = search(tree_scorer(*trees), *limits, beams=3, num_best=3)
    alone = [
        search(tree_scorer(tree), limit, beams=3, num_best=3)[0]
        for tree, limit in zip(trees, limits, strict=True)
    ]
    assert together == alone


@pytest.mark.parametrize("seed", range(5))
def test_rare_checks_give_the_same_result(tree_scorer, monkeypatch, seed):
    expected = search(tree_scorer(random_tree(seed)), 4, beams=2, num_best=2)
    monkeypatch.setattr(beam, "should_check", lambda step, device: False)
    assert search(tree_scorer(random_tree(seed)), 4, beams=2, num_best=2) == expected


def test_search_stops_when_enough_have_ended(tree_scorer, lecture_tree):
    scorer = tree_scorer(lecture_tree)
    search(scorer, 50, beams=2)
    assert scorer.num_steps == 4


def test_better_hypotheses_that_end_last_are_not_lost(tree_scorer):
    tree = {
        (): (0.5, 0.1, 0.1, 0.3),
        (0,): (0.45, 0.55, 0.0, 0.0),
        (0, 0): (0.0, 0.0, 0.0, 1.0),
        (0, 1): (0.0, 0.0, 0.0, 1.0),
    }
    (found,) = search(tree_scorer(tree), 10, beams=2, num_best=2)
    assert [hypothesis.tokens for hypothesis in found] == [(0, 1, END), (0, 0, END)]


def test_bad_hypotheses_that_end_early_do_not_end_the_search(tree_scorer):
    confident = (0.97, 0.01, 0.01, 0.01)
    tree = {(): confident, (0,): confident, (0, 0): confident, (0, 0, 0): (0.01, 0.01, 0.01, 0.97)}
    (found,) = search(tree_scorer(tree), 10, beams=3)
    assert found[0].tokens == (0, 0, 0, END)


def test_impossible_tokens_are_never_generated(tree_scorer):
    only_b = {(): (0.0, 1.0, 0.0, 0.0), (1,): (0.0, 0.0, 0.0, 1.0)}
    (found,) = search(tree_scorer(only_b), 4, beams=3, num_best=3)
    assert [hypothesis.tokens for hypothesis in found] == [(1, END)]


def test_more_results_than_beams_is_an_error(tree_scorer, lecture_tree):
    with pytest.raises(
        ConfigError,
        match=r"^`nbest` must be at most the number of beams \(2\), but is 3\. "
        r"Ask for more beams\.$",
    ):
        search(tree_scorer(lecture_tree), 4, beams=2, num_best=3)
