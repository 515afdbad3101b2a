"""Two ways to compute the same logits: a sentence in a batch and alone, padded and unpadded."""

import pytest
import torch

from regard.attention.recording import record
from regard.training.checkpoint import load_weights, save_weights
from tests.fixtures.variants import ATTENTION, FORMS, MODELS, MONOTONIC, TRANSFORMERS

pytestmark = pytest.mark.matrix("config", MODELS, TRANSFORMERS, ATTENTION, FORMS)


def same(ours, theirs):
    return torch.allclose(ours, theirs, atol=1e-5)


def test_batched_equals_alone(model, sentences, logits):
    for row in range(3):
        alone = model(*sentences.alone(row), sentences.targets[row : row + 1]).logits
        assert same(alone, logits[row : row + 1])


def test_padded_equals_unpadded(model, sentences, logits):
    assert same(model(*sentences.padded(4), sentences.targets).logits, logits)


def test_recorded_equals_unrecorded(model, sentences, logits):
    with record(model):
        recorded = model(sentences.source, sentences.mask, sentences.targets).logits
    assert same(recorded, logits)


@pytest.mark.matrix("config", MONOTONIC)
def test_monotonic_attention_selects_one_position_and_never_goes_back(model, sentences):
    with record(model) as maps:
        model(sentences.source, sentences.mask, sentences.targets)
    weights = maps.stack()[:, 0, 0]
    assert ((weights == 0) | (weights == 1)).all()
    assert (weights.sum(-1) == 1).all()
    choices = weights.argmax(-1)
    assert (choices.diff(dim=1) >= 0).all()
    assert choices.any(), "attention never leaves the first position"


@torch.no_grad()
def test_saved_and_loaded_equals_the_original(config, build, sentences, tmp_path):
    model, other = build(config), build(config, seed=1)
    inputs = sentences.source, sentences.mask, sentences.targets
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    assert torch.equal(other(*inputs).logits, model(*inputs).logits)
