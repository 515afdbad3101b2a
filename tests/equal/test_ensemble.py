"""Two ways to compute the same result: ensembles of models of every kind."""

import pytest
import torch

from regard.models.decoders import DECODERS
from regard.models.ensemble import Ensemble
from regard.search.beam import beam_search
from regard.search.forced import target_log_probs
from regard.search.greedy import greedy
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from tests.all_pairs import Matrix
from tests.fixtures.inputs import END, PAD, START, make_sentences

MAX_LENGTHS = [9, 8, 4]
SAMPLE_KEYS = [11, 5, 8]
ENSEMBLES = Matrix(
    "ensembles",
    decoders={settings.kind: [settings] for settings in DECODERS} | {"all": list(DECODERS)},
    method={
        "greedy": ({"beams": 1}, 1),
        "beam": ({"beams": 4}, 4),
        "sample": ({"temperature": 1.0}, 4),
        "rules": ({"beams": 3, "no_repeat_ngram": 2, "repetition_penalty": 1.3}, 3),
    },
)
pytestmark = pytest.mark.matrix("decoders, method", ENSEMBLES)


@pytest.fixture(scope="module")
def sentences():
    return make_sentences()


@pytest.fixture(scope="module")
def model(decoders, tiny_configs, build):
    """An ensemble of a model per decoder and a transformer."""
    configs = list(tiny_configs.values())
    chosen = [next(c for c in configs if type(c.decoder) is decoder) for decoder in decoders]
    chosen.append(tiny_configs["transformer-transformer"])
    # Double precision, so that rounding does not change the result.
    models = [build(config, seed).double() for seed, config in enumerate(chosen)]
    return Ensemble([each.requires_grad_(False) for each in models])


@pytest.fixture(scope="module")
def logits(model, sentences):
    """Logits of all target positions, computed at once."""
    return model(sentences.source, sentences.mask, sentences.targets).logits


def start(model, sentences, beams=1):
    return model.start(model.encode(sentences.source, sentences.mask), beams=beams)


def run_search(model, source, mask, *, method, max_lengths=MAX_LENGTHS, sample_keys=SAMPLE_KEYS):
    settings, num_best = method
    return search(
        ModelScorer(model, model.encode(source, mask), banned=(PAD, START)),
        start=START,
        end=END,
        max_lengths=torch.tensor(max_lengths),
        config=SearchConfig(**settings),
        num_best=num_best,
        sample_keys=sample_keys,
    )


@pytest.fixture(scope="module")
def hypotheses(model, sentences, method):
    return run_search(model, sentences.source, sentences.mask, method=method)


def same(ours, theirs):
    return torch.allclose(ours, theirs, atol=1e-5)


def test_step_by_step_equals_all_at_once(model, sentences, logits):
    state, steps = start(model, sentences), []
    for tokens in sentences.targets.split(1, dim=1):
        step_logits, state = model.step(tokens, state)
        steps.append(step_logits)
    assert same(torch.cat(steps, dim=1), logits)


def test_batched_equals_alone(model, sentences, logits):
    for row in range(3):
        alone = model(*sentences.alone(row), sentences.targets[row : row + 1]).logits
        assert same(alone, logits[row : row + 1])


def test_every_beam_of_a_sentence_has_the_logits_of_the_sentence(model, sentences, logits):
    targets = sentences.targets.repeat_interleave(2, dim=0)
    beams, _ = model.step(targets, start(model, sentences, beams=2))
    assert same(beams, logits.repeat_interleave(2, dim=0))


def test_beam_of_one_equals_greedy(model, sentences):
    scorer = ModelScorer(model, model.encode(sentences.source, sentences.mask), banned=(PAD, START))
    common = {"start": START, "end": END, "max_lengths": torch.tensor(MAX_LENGTHS)}
    beams = beam_search(scorer, **common, config=SearchConfig(beams=1), num_best=1)
    expected = greedy(scorer, **common)
    assert [best.tokens for (best,) in beams] == [hypothesis.tokens for hypothesis in expected]


def test_batched_search_equals_alone(model, sentences, method, hypotheses):
    for row, group in enumerate(hypotheses):
        (alone,) = run_search(
            model,
            *sentences.alone(row),
            method=method,
            max_lengths=MAX_LENGTHS[row : row + 1],
            sample_keys=SAMPLE_KEYS[row : row + 1],
        )
        assert [best.tokens for best in alone] == [best.tokens for best in group]


def test_log_probabilities_of_search_equal_those_of_forced_decoding(model, sentences, hypotheses):
    for row, group in enumerate(hypotheses):
        for hypothesis in group:
            targets = torch.tensor([[START, *hypothesis.tokens]])
            forced = target_log_probs(model, *sentences.alone(row), targets=targets)[0]
            assert hypothesis.step_log_probs == pytest.approx(forced.tolist(), abs=1e-5)
