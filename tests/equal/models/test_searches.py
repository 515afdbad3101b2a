"""Two ways to find the same hypotheses: beam and greedy search, in a batch and alone."""

import pytest
import torch

from regard.search.beam import beam_search
from regard.search.forced import target_log_probs
from regard.search.greedy import greedy
from regard.search.scorer import ModelScorer
from regard.search.settings import SearchConfig
from tests.fixtures.inputs import END, PAD, START
from tests.fixtures.variants import ATTENTION, FORMS, MODELS, TRANSFORMERS

pytestmark = pytest.mark.matrix("config", MODELS, TRANSFORMERS, ATTENTION, FORMS)

MAX_LENGTHS = [9, 8, 4]


def search(model, source, mask, *, max_lengths=MAX_LENGTHS, beams, num_best=1):
    return beam_search(
        ModelScorer(model, model.encode(source, mask), banned=(PAD, START)),
        start=START,
        end=END,
        max_lengths=torch.tensor(max_lengths),
        config=SearchConfig(beams=beams),
        num_best=num_best,
    )


@pytest.fixture(scope="module")
def best_four(model, sentences):
    """The four best hypotheses of each sentence, searched for in a batch."""
    return search(model, sentences.source, sentences.mask, beams=4, num_best=4)


def test_beam_of_one_equals_greedy(model, sentences):
    scorer = ModelScorer(model, model.encode(sentences.source, sentences.mask), banned=(PAD, START))
    expected = greedy(scorer, start=START, end=END, max_lengths=torch.tensor(MAX_LENGTHS))
    beams = search(model, sentences.source, sentences.mask, beams=1)
    assert [best.tokens for (best,) in beams] == [hypothesis.tokens for hypothesis in expected]


def test_batched_search_equals_alone(model, sentences, best_four):
    for row, hypotheses in enumerate(best_four):
        max_lengths = MAX_LENGTHS[row : row + 1]
        source = sentences.alone(row)
        (alone,) = search(model, *source, max_lengths=max_lengths, beams=4, num_best=4)
        assert [best.tokens for best in alone] == [best.tokens for best in hypotheses]


def test_log_probabilities_of_search_equal_those_of_forced_decoding(model, sentences, best_four):
    for row, hypotheses in enumerate(best_four):
        for hypothesis in hypotheses:
            targets = torch.tensor([[START, *hypothesis.tokens]])
            forced = target_log_probs(model, *sentences.alone(row), targets=targets)[0]
            assert torch.allclose(forced, torch.tensor(hypothesis.step_log_probs), atol=1e-5)
