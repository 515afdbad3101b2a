"""Image metrics compared with formulas evaluated pixel by pixel."""

import math

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.metrics.vision import images
from regard.metrics.vision.images import image_mse, image_psnr, image_ssim, mse, psnr, ssim


@pytest.fixture
def pair():
    generator = np.random.default_rng(3)
    targets = generator.integers(0, 256, (3, 2, 13, 12), dtype=np.uint8)
    noise = generator.integers(-40, 41, targets.shape)
    return np.clip(targets + noise, 0, 255).astype(np.uint8), targets


def slow_ssim(one, other, size=11):
    """Compute SSIM by Wang et al. 2004, eq. 13, window by window, with two-dimensional weights."""
    half = size // 2
    weights = np.array(
        [
            [math.exp(-((y - half) ** 2 + (x - half) ** 2) / (2 * 1.5**2)) for x in range(size)]
            for y in range(size)
        ]
    )
    weights /= weights.sum()
    values = []
    for first, second in zip(one / 255, other / 255, strict=True):
        for top in range(first.shape[0] - size + 1):
            for left in range(first.shape[1] - size + 1):
                a, b = (c[top : top + size, left : left + size] for c in (first, second))
                mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
                var_a = (weights * (a - mean_a) ** 2).sum()
                var_b = (weights * (b - mean_b) ** 2).sum()
                shared = (weights * (a - mean_a) * (b - mean_b)).sum()
                light = (2 * mean_a * mean_b + 1e-4) / (mean_a**2 + mean_b**2 + 1e-4)
                values.append(light * (2 * shared + 9e-4) / (var_a + var_b + 9e-4))
    return np.mean(values)


def test_ssim_equals_the_formula(pair):
    found = image_ssim(*pair)
    assert found == pytest.approx([slow_ssim(*both) for both in zip(*pair, strict=True)])


def test_psnr_equals_the_formula(pair):
    for value, predicted, targets in zip(image_psnr(*pair), *pair, strict=True):
        error = np.mean(
            [(int(a) - int(b)) ** 2 for a, b in zip(predicted.flat, targets.flat, strict=True)]
        )
        assert value == pytest.approx(20 * math.log10(255 / math.sqrt(error)))


def test_equal_images_have_the_best_values(pair):
    _, targets = pair
    assert image_mse(targets, targets).tolist() == [0.0] * 3
    assert image_psnr(targets, targets).tolist() == pytest.approx([100.0] * 3)
    assert image_ssim(targets, targets).tolist() == pytest.approx([1.0] * 3)


def test_error_of_one_level_is_48_decibels():
    black = np.zeros((1, 1, 4, 4), np.uint8)
    assert image_psnr(black, black + 1)[0] == pytest.approx(48.1308, abs=1e-4)


def test_small_images_have_a_small_window(pair):
    predicted, targets = (side[:, :, :8, :8] for side in pair)
    expected = [slow_ssim(*both, size=7) for both in zip(predicted, targets, strict=True)]
    assert image_ssim(predicted, targets) == pytest.approx(expected)
    assert "window:7" in ssim(predicted, targets).signature


def test_chunking_does_not_change_the_values(pair, monkeypatch):
    together = image_ssim(*pair)
    monkeypatch.setattr(images, "CHUNK", 2)
    assert image_ssim(*pair) == pytest.approx(together)


def test_results_are_means_with_an_interval(pair):
    for measure, each in ((psnr, image_psnr), (ssim, image_ssim), (mse, image_mse)):
        found = measure(*pair, num_bootstrap=50)
        assert found.value == pytest.approx(each(*pair).mean())
        low, high = found.interval
        assert low <= found.value <= high
        assert "bs:50" in found.signature


@pytest.mark.parametrize(
    ("predicted", "targets", "message"),
    [
        (np.zeros((1, 1, 4, 4)), np.zeros((1, 1, 4, 4), np.uint8), "`predicted` must.*float64"),
        (np.zeros((1, 4, 4), np.uint8), np.zeros((1, 1, 4, 4), np.uint8), r"shape \(1, 4, 4\)"),
        (
            np.zeros((1, 1, 4, 5), np.uint8),
            np.zeros((1, 1, 4, 4), np.uint8),
            "same shape, but have",
        ),
    ],
)
def test_invalid_images_are_refused(predicted, targets, message):
    with pytest.raises(DataError, match=message):
        psnr(predicted, targets)
