import pytest
import torch

from regard.studies.reproduce.encoder_decoders.beam_search import (
    NUM_WORDS,
    TREE,
    WORDS,
    TreeScorer,
    as_levels,
    exhaustive_search,
    search_tree,
)


def words(path):
    return " ".join(WORDS[token] for token in path[0])


def test_probabilities_of_the_tree_sum_to_one():
    assert all(sum(row.values()) == pytest.approx(1) for row in TREE.values())


def test_greedy_misses_what_beam_2_finds():
    levels = as_levels(TREE, WORDS, NUM_WORDS)
    (greedy,) = search_tree(levels, beams=1, length=NUM_WORDS)
    best, second = search_tree(levels, beams=2, length=NUM_WORDS)
    assert (words(greedy), round(greedy[1], 3)) == ("the cat sleeps", 0.132)
    assert (words(best), round(best[1], 3)) == ("a cat sleeps", 0.288)
    assert words(second) == words(greedy)


def test_exhaustive_search_multiplies_the_probabilities():
    ((tokens, probability),) = exhaustive_search(as_levels(TREE, WORDS, NUM_WORDS))
    assert words((tokens, probability)) == "a cat sleeps"
    assert probability == pytest.approx(0.4 * 0.9 * 0.8)


def test_scorer_looks_up_the_prefix_of_each_hypothesis():
    levels = [torch.tensor([[[0.5, 0.5]]]), torch.tensor([[[0.9, 0.1], [0.2, 0.8]]])]
    scorer = TreeScorer(levels)
    state = scorer.start(2)
    _, state = scorer.step(torch.zeros(2, dtype=torch.long), state)
    log_probs, _ = scorer.step(torch.tensor([1, 0]), state)
    torch.testing.assert_close(log_probs.exp(), torch.tensor([[0.2, 0.8], [0.9, 0.1]]))
