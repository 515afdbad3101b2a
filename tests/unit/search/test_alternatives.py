import math

import pytest
import torch

from regard.search import alternatives
from regard.search.alternatives import find_alternatives
from regard.search.beam import beam_search
from regard.search.scorer import ModelScorer
from regard.search.settings import SearchConfig
from tests.fixtures.inputs import END, PAD, START

FAMILIES = [
    "gru-one-cho-gru",
    "gru-both-bahdanau-gru",
    "lstm-one-luong-lstm",
    "convolution-convolution",
    "transformer-transformer",
    "transformer-prefix",
    "lstm-both-bahdanau-lstm-pointer",
]


def test_alternatives_are_the_most_likely_tokens_of_the_tree(tree_scorer, lecture_tree):
    ((found,),) = find_alternatives(tree_scorer(lecture_tree), [[(0, 2, 1)]], start=9, num=2)
    assert [[token for token, _ in position] for position in found] == [[0, 1], [1, 2], [1, 2]]
    probs = [[math.exp(value) for _, value in position] for position in found]
    assert probs == [
        pytest.approx([0.5, 0.2]),
        pytest.approx([0.4, 0.3]),
        pytest.approx([0.6, 0.2]),
    ]


def test_impossible_tokens_are_left_out(tree_scorer):
    scorer = tree_scorer({(): (0.0, 1.0, 0.0, 0.0)})
    assert find_alternatives(scorer, [[(1,)]], start=9, num=3) == [[[[(1, 0.0)]]]]


def test_sentences_may_have_no_targets_or_empty_ones(tree_scorer, lecture_tree):
    scorer = tree_scorer(lecture_tree, lecture_tree, lecture_tree)
    found = find_alternatives(scorer, [[], [()], [(0, 1), (2,)]], start=9, num=1)
    assert [[len(one) for one in group] for group in found] == [[], [0], [2, 1]]
    assert find_alternatives(scorer, [[], [()], []], start=9, num=1) == [[], [[]], []]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("max_tokens", [1, 30, 1024])
def test_log_probabilities_are_those_of_search(
    family, max_tokens, build, tiny_configs, sentences, monkeypatch
):
    monkeypatch.setattr(alternatives, "MAX_TOKENS", max_tokens)
    model = build(tiny_configs[family])
    with torch.no_grad():
        scorer = ModelScorer(
            model, model.encode(sentences.source, sentences.mask), banned=(PAD, START)
        )
        best = beam_search(
            scorer,
            start=START,
            end=END,
            max_lengths=torch.tensor([9, 8, 5]),
            config=SearchConfig(beams=3),
            num_best=3,
        )
        targets = [[one.tokens for one in group] for group in best]
        found = find_alternatives(scorer, targets, start=START, num=11)
    for hypotheses, group in zip(best, found, strict=True):
        for hypothesis, positions in zip(hypotheses, group, strict=True):
            for token, expected, position in zip(
                hypothesis.tokens, hypothesis.step_log_probs, positions, strict=True
            ):
                values = dict(position)
                assert values[token] == pytest.approx(expected, abs=1e-5)
                assert PAD not in values and START not in values and len(values) == 9
                assert [*values.values()] == sorted(values.values(), reverse=True)
