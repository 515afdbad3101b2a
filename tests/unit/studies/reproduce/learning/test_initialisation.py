import pytest
import torch
from torch import nn

from regard.models.init import InitConfig
from regard.studies.reproduce.learning import initialisation
from regard.studies.reproduce.learning.initialisation import (
    METHODS,
    Method,
    Perceptron,
    compare_formulas,
    measure_variances,
    train_features,
)


def test_formulas_are_those_of_torch():
    for row in compare_formulas(1).values():
        assert row["torch.nn.init"] == pytest.approx(row["formula"], rel=0.02)
        assert row["largest difference of weights"] == 0


def test_variances_of_a_linear_network_follow_the_weights():
    method = Method(InitConfig(rule="normal", scale=0.05), nn.Identity())
    found = measure_variances(method, 1)
    factors = [width * 0.05**2 for width in initialisation.WIDTHS[:-1]]
    assert found["activations"][0] == pytest.approx(factors[0], rel=0.1)
    for before, after, factor in zip(
        found["activations"], found["activations"][1:], factors[1:], strict=False
    ):
        assert after / before == pytest.approx(factor, rel=0.35)


def test_perceptron_keeps_sums_and_activations():
    model = Perceptron([3, 4, 2], torch.relu)
    output = model(torch.randn(5, 3))
    assert [tuple(one.shape) for one in model.sums] == [(5, 4), (5, 2)]
    assert torch.equal(model.activations[0], model.sums[0].relu())
    assert model.activations[1] is output


def test_features_that_start_equal_stay_equal(monkeypatch):
    monkeypatch.setattr(initialisation, "NUM_STEPS", 20)
    spread, _ = train_features(1)
    assert max(spread["zeros"]) < 1e-6 < min(spread["random"])


def test_measuring_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    measure_variances(METHODS["Kaiming fan_in"], 1)
    assert torch.equal(torch.rand(1), expected)
