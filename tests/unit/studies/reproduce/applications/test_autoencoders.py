from dataclasses import replace

import pytest
import torch

from regard.studies.reproduce.applications import autoencoders as module
from regard.studies.reproduce.applications import drawn_shapes
from regard.studies.reproduce.applications.autoencoders import (
    MODELS,
    autoencoders,
    mean_difference,
    nearest_distance,
)

TINY = ("train.max_steps=1", "train.validate_every=1")
TINY_BOTTLENECK = (
    *TINY,
    "model.encoder.encoder.widths=[4,4,4,4]",
    "model.generator.widths=[4,4,4]",
)


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Findings of models after one step."""
    with pytest.MonkeyPatch.context() as patch:
        few = {"train": 40, "valid": 10, "test": 20, "anomalies": 10}
        patch.setattr(drawn_shapes, "NUM_IMAGES", few)
        patch.setattr(module, "NUM_LABELLED", 2)
        patch.setattr(module, "NUM_DRAWS", 2)
        tiny = {
            name: replace(
                model,
                settings=(*model.settings, *(TINY if name == "denoising" else TINY_BOTTLENECK)),
            )
            for name, model in MODELS.items()
        }
        patch.setattr(module, "MODELS", tiny)
        return autoencoders(1, tmp_path_factory.mktemp("autoencoders"))


def test_every_use_has_a_row_and_a_baseline(findings):
    (rows,) = findings.tables.values()
    assert len(rows) == 7
    for row in rows.values():
        assert row["autoencoder"] >= 0 and row["baseline"] >= 0


def test_claims_on_quality_do_not_hold_for_untrained_models(findings):
    reduction, denoising, *_ = findings.claims
    assert not reduction.holds and not denoising.holds


def test_sheet_comes_first(findings):
    assert list(findings.plots) == [
        "autoencoders",
        "autoencoders-anomalies",
        "autoencoders-compression",
    ]


def test_nearest_distance_is_zero_for_copies():
    vectors = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    assert nearest_distance(vectors, vectors.flip(0)) == pytest.approx(0, abs=1e-6)
    assert nearest_distance(torch.zeros(1, 2), vectors) == pytest.approx(0.5)


def test_mean_difference_of_equal_vectors_is_zero():
    assert mean_difference(torch.ones(3, 4)) == 0
    assert mean_difference(torch.tensor([[0.0, 0.0], [1.0, 0.0]])) == pytest.approx(0.5)
