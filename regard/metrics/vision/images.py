"""Image metrics: mean squared error, PSNR and SSIM, per image and on average."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result

Array = NDArray[np.float64]

WHITE = 255
MAX_PSNR = 100.0
"""PSNR of equal images, which would otherwise be infinite."""

WINDOW = 11
"""Rows and columns of the window of SSIM."""
WINDOW_STD = 1.5
"""Standard deviation of the Gaussian weights of the window."""
STABILIZERS = (0.01, 0.03)
"""K1 and K2 of SSIM, which avoid division by zero."""

CHUNK = 500
"""Number of images compared at once."""


def image_mse(predicted: ArrayLike, targets: ArrayLike) -> Array:
    """Return the mean squared error of each image, with values from 0 to 1: (B,).

    Args:
        predicted: (B, C, Y, X), uint8.
        targets: (B, C, Y, X), uint8.
    """
    return _by_chunk(_image_mse, predicted, targets)


def image_psnr(predicted: ArrayLike, targets: ArrayLike) -> Array:
    """Return the peak signal-to-noise ratio of each image in dB, at most 100: (B,).

    Args:
        predicted: (B, C, Y, X), uint8.
        targets: (B, C, Y, X), uint8.
    """
    min_error = 10 ** (-MAX_PSNR / 10)
    return np.asarray(-10 * np.log10(np.maximum(image_mse(predicted, targets), min_error)))


def image_ssim(predicted: ArrayLike, targets: ArrayLike) -> Array:
    """Return the structural similarity of each image, 1 for equal images: (B,).

    Wang et al. 2004, eq. 13, with their window and constants, per channel, at positions where
    the window is inside the image. The window is smaller for images smaller than 11 pixels.

    Args:
        predicted: (B, C, Y, X), uint8.
        targets: (B, C, Y, X), uint8.
    """
    return _by_chunk(_image_ssim, predicted, targets)


def psnr(
    predicted: ArrayLike, targets: ArrayLike, *, name: str = "PSNR", num_bootstrap: int = 0
) -> Result:
    """Compute the peak signal-to-noise ratio in dB, averaged over images.

    Args:
        predicted: (B, C, Y, X), uint8.
        targets: (B, C, Y, X), uint8.
        name: Name of the result.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    signature = f"unit:dB|average:image|bits:8|most:{MAX_PSNR:g}"
    return _mean(name, image_psnr(predicted, targets), signature, num_bootstrap=num_bootstrap)


def ssim(predicted: ArrayLike, targets: ArrayLike, *, num_bootstrap: int = 0) -> Result:
    """Compute the structural similarity, averaged over images; at most 1.

    Args:
        predicted: (B, C, Y, X), uint8.
        targets: (B, C, Y, X), uint8.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    values = image_ssim(predicted, targets)
    window = _window_size(np.shape(targets)[2:])
    signature = f"average:image|bits:8|window:{window}|deviation:{WINDOW_STD:g}"
    return _mean("SSIM", values, signature, num_bootstrap=num_bootstrap)


def mse(
    predicted: ArrayLike, targets: ArrayLike, *, name: str = "MSE", num_bootstrap: int = 0
) -> Result:
    """Compute the mean squared error, with values from 0 to 1.

    Args:
        predicted: (B, C, Y, X), uint8.
        targets: (B, C, Y, X), uint8.
        name: Name of the result.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    values = image_mse(predicted, targets)
    return _mean(name, values, "range:0-1|bits:8", num_bootstrap=num_bootstrap)


def _mean(name: str, values: Array, signature: str, *, num_bootstrap: int) -> Result:
    mean = ratio(name, values.tolist(), signature=signature, num_bootstrap=num_bootstrap, scale=1)
    return replace(mean, detail={"count": len(values)})


def _by_chunk(
    metric: Callable[[Array, Array], Array], predicted: ArrayLike, targets: ArrayLike
) -> Array:
    one, other = np.asarray(predicted), np.asarray(targets)
    for name, array in (("predicted", one), ("targets", other)):
        if array.dtype != np.uint8 or array.ndim != 4 or not array.size:
            raise DataError(
                f"`{name}` must hold uint8 images with the axes (B, C, Y, X), but has the shape "
                f"{array.shape} and the type {array.dtype}."
            )
    if one.shape != other.shape:
        raise DataError(
            "`predicted` and `targets` must have the same shape, but have "
            f"{one.shape} and {other.shape}."
        )
    starts = range(0, len(one), CHUNK)
    return np.concatenate(
        [metric(*(a[start : start + CHUNK] / WHITE for a in (one, other))) for start in starts]
    )


def _image_mse(one: Array, other: Array) -> Array:
    return np.asarray(((one - other) ** 2).mean((1, 2, 3)))


def _image_ssim(one: Array, other: Array) -> Array:
    c1, c2 = (constant**2 for constant in STABILIZERS)
    weights = _gaussian(_window_size(one.shape[2:]))
    mean_one, mean_other = _blur(one, weights), _blur(other, weights)
    variance_one = _blur(one**2, weights) - mean_one**2
    variance_other = _blur(other**2, weights) - mean_other**2
    covariance = _blur(one * other, weights) - mean_one * mean_other
    numerator = (2 * mean_one * mean_other + c1) * (2 * covariance + c2)
    denominator = (mean_one**2 + mean_other**2 + c1) * (variance_one + variance_other + c2)
    return np.asarray((numerator / denominator).mean((1, 2, 3)))


def _window_size(sides: tuple[int, ...]) -> int:
    """Return the size of the largest window that fits, an odd number."""
    size = min(WINDOW, *sides)
    return size - (size + 1) % 2


def _gaussian(size: int) -> Array:
    positions = np.arange(size) - size // 2
    weights = np.exp(-(positions**2) / (2 * WINDOW_STD**2))
    return np.asarray(weights / weights.sum())


def _blur(images: Array, weights: Array) -> Array:
    """Filter images (B, C, Y, X) with a separable window."""
    for axis in (2, 3):
        windows = np.lib.stride_tricks.sliding_window_view(images, len(weights), axis=axis)
        images = windows @ weights
    return images
