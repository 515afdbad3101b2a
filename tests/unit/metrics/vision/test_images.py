"""Pictures against pictures, by formulas written out pixel by pixel."""

import math

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.metrics.vision import images as pictures
from regard.metrics.vision.images import image_mse, image_psnr, image_ssim, mse, psnr, ssim


@pytest.fixture
def pair():
    generator = np.random.default_rng(3)
    right = generator.integers(0, 256, (3, 2, 13, 12), dtype=np.uint8)
    noise = generator.integers(-40, 41, right.shape)
    return np.clip(right + noise, 0, 255).astype(np.uint8), right


def slow_ssim(one, other, size=11):
    """Wang et al. 2004, eq. 13, window by window, with weights of two dimensions."""
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


def test_similarity_is_that_of_the_formula(pair):
    found = image_ssim(*pair)
    assert found == pytest.approx([slow_ssim(*both) for both in zip(*pair, strict=True)])


def test_decibels_are_those_of_the_formula(pair):
    for value, drawn, right in zip(image_psnr(*pair), *pair, strict=True):
        error = np.mean(
            [(int(a) - int(b)) ** 2 for a, b in zip(drawn.flat, right.flat, strict=True)]
        )
        assert value == pytest.approx(20 * math.log10(255 / math.sqrt(error)))


def test_equal_pictures_have_the_best_values(pair):
    _, right = pair
    assert image_mse(right, right).tolist() == [0.0] * 3
    assert image_psnr(right, right).tolist() == pytest.approx([100.0] * 3)
    assert image_ssim(right, right).tolist() == pytest.approx([1.0] * 3)


def test_one_level_everywhere_is_48_decibels():
    black = np.zeros((1, 1, 4, 4), np.uint8)
    assert image_psnr(black, black + 1)[0] == pytest.approx(48.1308, abs=1e-4)


def test_small_pictures_have_a_small_window(pair):
    drawn, right = (side[:, :, :8, :8] for side in pair)
    expected = [slow_ssim(*both, size=7) for both in zip(drawn, right, strict=True)]
    assert image_ssim(drawn, right) == pytest.approx(expected)
    assert "window:7" in ssim(drawn, right).signature


def test_chunks_are_as_all_at_once(pair, monkeypatch):
    together = image_ssim(*pair)
    monkeypatch.setattr(pictures, "CHUNK", 2)
    assert image_ssim(*pair) == pytest.approx(together)


def test_results_are_means_with_an_interval(pair):
    for measure, each in ((psnr, image_psnr), (ssim, image_ssim), (mse, image_mse)):
        found = measure(*pair, num_bootstrap=50)
        assert found.value == pytest.approx(each(*pair).mean())
        low, high = found.interval
        assert low <= found.value <= high
        assert "bs:50" in found.signature


@pytest.mark.parametrize(
    ("drawn", "right", "message"),
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
def test_other_pictures_are_refused(drawn, right, message):
    with pytest.raises(DataError, match=message):
        psnr(drawn, right)
