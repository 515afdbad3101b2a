from types import SimpleNamespace

import pytest
import torch

from regard.data.batch import Batch
from regard.models.build import ModelConfig
from regard.models.decoders import ChoDecoderConfig, RecurrentPrefixDecoderConfig
from regard.models.encoders.embedding import EmbeddingEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.runs.recipes import load_recipe
from regard.studies.reproduce.encoder_decoders.encoder_decoder_forms import (
    BAHDANAU,
    CHO,
    DENSE,
    FORMS,
    INPUT,
    ONE_SEQUENCE,
    SUTSKEVER,
    _claims,
    measure_influence,
    measure_positions,
    start_from,
)
from regard.studies.reproduce.encoder_decoders.small_models import RECIPE, TRAINING, Scores

SIZES = {"embedding_dim": 6, "dim": 6}
MODELS = {
    "one sequence": ModelConfig(
        encoder=EmbeddingEncoderConfig(dim=6), decoder=RecurrentPrefixDecoderConfig(**SIZES)
    ),
    "input": ModelConfig(
        encoder=RnnEncoderConfig(**SIZES),
        decoder=ChoDecoderConfig(start="copy", readout="linear", **SIZES),
    ),
}


@pytest.fixture(params=MODELS)
def model(request, build):
    return build(MODELS[request.param])


def test_forms_differ_in_the_decoder_as_described():
    recipes = {
        name: load_recipe(RECIPE, overrides=(*TRAINING, *form)) for name, form in FORMS.items()
    }
    assert {name: recipe.model.decoder.kind for name, recipe in recipes.items()} == {
        ONE_SEQUENCE: "recurrent_prefix",
        INPUT: "cho",
        DENSE: "cho",
        CHO: "cho",
        SUTSKEVER: "sutskever",
        BAHDANAU: "bahdanau",
    }
    for recipe in recipes.values():
        decoder = recipe.model.decoder
        assert (decoder.cell, decoder.num_layers, decoder.dim) == ("gru", 1, 64)
        assert recipe.train == recipes[CHO].train


def test_context_as_a_leaf_gives_the_same_logits(model, sentences):
    memory = model.encode(sentences.source, sentences.mask)
    context, state = start_from(model, memory)
    logits, _ = model.step(sentences.targets, state)
    expected = model(sentences.source, sentences.mask, sentences.targets).logits
    assert torch.allclose(logits, expected, atol=1e-6)
    assert context.is_leaf and context.shape == (3, 6)


def test_influence_is_the_norm_of_the_derivative(model, sentences):
    mask = torch.ones_like(sentences.targets).bool()
    mask[0, -1] = False
    batch = Batch(sentences.source, sentences.mask, sentences.targets, mask, rows=(0, 1, 2))
    task = SimpleNamespace(
        model=model,
        batches=lambda examples, config: [batch],
        recipe=load_recipe(RECIPE),
        encode_batch=lambda batch: model.encode(batch.source, batch.source_mask),
    )
    influence = measure_influence(task, [], seed=3)
    assert len(influence) == sentences.targets.shape[1] - 2  # neither the start nor the last token
    assert influence[0] == 1

    context, state = start_from(model, task.encode_batch(batch))
    direction = torch.randn(3, 11, generator=torch.Generator().manual_seed(3))
    norms = []
    for position in (0, 3):
        logits, _ = model.step(batch.target[:, : position + 1], state)
        (gradient,) = torch.autograd.grad(
            (logits[:, -1] * direction).sum(), context, retain_graph=True
        )
        norms.append(gradient.norm(dim=-1).mean().item())
    assert influence[3] == pytest.approx(norms[1] / norms[0], rel=1e-4)


def test_correct_words_are_counted_by_position():
    rows = [(True, True, False), (True, False, False)]
    task = SimpleNamespace(correct_words=lambda examples: rows)
    assert measure_positions(task, []) == [100, 50, 0]


def make_claims(*, attention=98.0, long=20.0, once=0.1, last=10.0):
    """Return whether each claim holds for made-up results."""
    lengths = range(4, 10)
    fixed = Scores({length: 90.0 if length < 6 else long for length in lengths}, {})
    results = {name: fixed for name in FORMS} | {
        BAHDANAU: Scores(dict.fromkeys(lengths, attention), {})
    }
    influence = {ONE_SEQUENCE: [1.0, once], INPUT: [1.0, 0.9]}
    by_position = {ONE_SEQUENCE: [90.0] * 6 + [last] * 3, INPUT: [90.0] * 6 + [70.0] * 3}
    return [claim.holds for claim in _claims(results, influence, by_position)]


def test_claims_hold_if_the_numbers_support_them():
    assert make_claims() == [True] * 5


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"attention": 10.0}, {0, 4}),
        ({"long": 89.0}, {3}),
        ({"once": 0.6}, {1}),
        ({"last": 80.0}, {2}),
    ],
)
def test_claims_fail_if_the_numbers_contradict_them(changes, fails):
    held = make_claims(**changes)
    assert {number for number, holds in enumerate(held) if not holds} == fails
