from types import SimpleNamespace

import pytest
import torch

from regard.runs.recipes import load_recipe
from regard.studies.reproduce.encoder_decoders.bottleneck import (
    ATTENTION,
    MODELS,
    WIDTHS,
    _claims,
    count_attended,
    name_fixed,
)
from regard.studies.reproduce.encoder_decoders.small_models import RECIPE, TRAINING, Scores


def test_models_differ_in_the_context_only():
    recipes = {
        name: load_recipe(RECIPE, overrides=(*TRAINING, *model)) for name, model in MODELS.items()
    }
    for dim in WIDTHS:
        model = recipes[name_fixed(dim)].model
        assert (model.encoder.dim, model.decoder.dim, model.decoder.kind) == (dim, dim, "cho")
    attention = recipes[ATTENTION].model
    assert (2 * attention.encoder.dim, attention.decoder.dim) == (64, 64)
    for recipe in recipes.values():
        assert (recipe.model.decoder.start, recipe.model.decoder.readout) == ("copy", "linear")
        assert recipe.train == recipes[ATTENTION].train


def test_most_attended_positions_are_counted_once():
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.3, 0.1]])[None, None]
    last = torch.tensor([[0.0, 0.0, 1.0]])[None, None]
    maps = [SimpleNamespace(weights=weights), SimpleNamespace(weights=last)]
    assert count_attended(SimpleNamespace(attend=lambda examples: maps), []) == 1.5


def make_claims(*, narrow=5.0, wide=40.0, attention=90.0, num_attended=10.0):
    """Return whether each claim holds for made-up results on long sources."""
    long = dict(zip(MODELS, (narrow, wide, attention), strict=True))
    results = {
        name: Scores({length: 95.0 if length < 6 else value for length in range(4, 13)}, {})
        for name, value in long.items()
    }
    return [claim.holds for claim in _claims(results, num_attended)]


def test_claims_hold_if_the_numbers_support_them():
    assert make_claims() == [True] * 5


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"narrow": 50.0}, {1}),
        ({"wide": 92.0}, {0, 2, 3}),
        ({"num_attended": 2.0}, {4}),
        ({"attention": 30.0}, {2, 3}),
    ],
)
def test_claims_fail_if_the_numbers_contradict_them(changes, fails):
    held = make_claims(**changes)
    assert {number for number, holds in enumerate(held) if not holds} == fails
