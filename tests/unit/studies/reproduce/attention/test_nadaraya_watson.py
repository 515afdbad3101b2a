import pytest
import torch

from regard.studies.reproduce.attention.nadaraya_watson import (
    AVERAGE,
    FIXED,
    LEARNED,
    nadaraya_watson,
)


@pytest.fixture(scope="module")
def findings():
    return nadaraya_watson(seed=1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_claims_hold_for_several_seeds(seed):
    claims = nadaraya_watson(seed).claims
    assert [claim.text for claim in claims if not claim.holds] == []


def test_same_seed_gives_the_same_numbers(findings):
    assert nadaraya_watson(1).tables == findings.tables


def test_average_pooling_is_constant(findings):
    assert findings.tables["Errors"][AVERAGE]["w"] == 0
    assert findings.tables["Errors"][AVERAGE]["roughness"] == pytest.approx(0, abs=1e-9)


def test_fixed_width_is_one(findings):
    assert findings.tables["Errors"][FIXED]["w"] == 1


def test_fixed_width_equals_an_explicit_gaussian_kernel(findings):
    generator = torch.Generator().manual_seed(1)
    x = (5 * torch.rand(50, generator=generator, dtype=torch.float64)).sort().values
    noise = 0.5 * torch.randn(50, generator=generator, dtype=torch.float64)
    y = 2 * x.sin() + x**0.8 + noise
    test_x = torch.arange(0, 5, 0.1, dtype=torch.float64)
    kernel = (-((test_x[:, None] - x) ** 2) / 2).exp()
    predicted = kernel @ y / kernel.sum(1)
    error = (predicted - 2 * test_x.sin() - test_x**0.8).square().mean().item()
    assert findings.tables["Errors"][FIXED]["test error"] == pytest.approx(error)


def test_left_out_error_exceeds_training_error(findings):
    row = findings.tables["Errors"][LEARNED]
    assert row["left-out error"] > row["training error"]


def test_plot_has_fits_truth_and_training_points(findings):
    axes = findings.plots["nadaraya-watson"].figure.axes[0]
    assert len(axes.lines) == 4
    assert len(axes.collections[0].get_offsets()) == 50


def test_weights_are_plotted_as_three_matrices(findings):
    axes = findings.plots["nadaraya-watson-weights"].figure.axes
    assert sum(len(part.images) for part in axes) == 3
