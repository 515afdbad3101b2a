"""Pictures against pictures: squared error, PSNR and SSIM, for each and on average."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result

Numbers = NDArray[np.float64]

WHITE = 255
MOST_DECIBELS = 100.0
"""PSNR of pictures that are equal, which would else be infinite."""

WINDOW = 11
"""Rows and columns of the window of SSIM."""
DEVIATION = 1.5
"""Of the Gaussian that weighs them."""
SMALL = (0.01, 0.03)
"""K1 and K2, by which SSIM is kept from dividing by nothing."""

CHUNK = 500
"""Pictures that are compared at once."""


def squared_errors(predicted: ArrayLike, right: ArrayLike) -> Numbers:
    """Return the mean squared error of each picture, where black is 0 and white is 1: (B,).

    Args:
        predicted: (B, C, Y, X), bytes.
        right: (B, C, Y, X), bytes.
    """
    return _by_chunk(_squared_errors, predicted, right)


def decibels(predicted: ArrayLike, right: ArrayLike) -> Numbers:
    """Return the peak signal-to-noise ratio of each picture in dB, at most 100: (B,).

    Args:
        predicted: (B, C, Y, X), bytes.
        right: (B, C, Y, X), bytes.
    """
    least = 10 ** (-MOST_DECIBELS / 10)
    return np.asarray(-10 * np.log10(np.maximum(squared_errors(predicted, right), least)))


def similarities(predicted: ArrayLike, right: ArrayLike) -> Numbers:
    """Return the structural similarity of each picture, 1 where they are equal: (B,).

    Wang et al. 2004, eq. 13, with their window and constants, channel by channel, on the places
    where the window lies inside. Of pictures smaller than 11 pixels, the window is smaller.

    Args:
        predicted: (B, C, Y, X), bytes.
        right: (B, C, Y, X), bytes.
    """
    return _by_chunk(_similarities, predicted, right)


def psnr(
    predicted: ArrayLike, right: ArrayLike, *, name: str = "PSNR", num_bootstrap: int = 0
) -> Result:
    """Measure the peak signal-to-noise ratio in dB, the mean over pictures.

    Args:
        predicted: (B, C, Y, X), bytes.
        right: (B, C, Y, X), bytes.
        name: What it is called, where it is not that of a model.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    signature = f"unit:dB|average:picture|bits:8|most:{MOST_DECIBELS:g}"
    return _mean(name, decibels(predicted, right), signature, num_bootstrap=num_bootstrap)


def ssim(predicted: ArrayLike, right: ArrayLike, *, num_bootstrap: int = 0) -> Result:
    """Measure the structural similarity, the mean over pictures; at most 1.

    Args:
        predicted: (B, C, Y, X), bytes.
        right: (B, C, Y, X), bytes.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    values = similarities(predicted, right)
    window = _window_size(np.shape(right)[2:])
    signature = f"average:picture|bits:8|window:{window}|deviation:{DEVIATION:g}"
    return _mean("SSIM", values, signature, num_bootstrap=num_bootstrap)


def mse(
    predicted: ArrayLike, right: ArrayLike, *, name: str = "MSE", num_bootstrap: int = 0
) -> Result:
    """Measure the squared error of a value, where black is 0 and white is 1.

    Args:
        predicted: (B, C, Y, X), bytes.
        right: (B, C, Y, X), bytes.
        name: What it is called, where it is not that of a model.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    values = squared_errors(predicted, right)
    return _mean(name, values, "range:0-1|bits:8", num_bootstrap=num_bootstrap)


def _mean(name: str, values: Numbers, signature: str, *, num_bootstrap: int) -> Result:
    mean = ratio(name, values.tolist(), signature=signature, num_bootstrap=num_bootstrap, scale=1)
    return replace(mean, detail={"count": len(values)})


def _by_chunk(
    measure: Callable[[Numbers, Numbers], Numbers], predicted: ArrayLike, right: ArrayLike
) -> Numbers:
    one, other = np.asarray(predicted), np.asarray(right)
    for name, array in (("predicted", one), ("right", other)):
        if array.dtype != np.uint8 or array.ndim != 4 or not array.size:
            raise DataError(
                f"`{name}` must hold pictures of bytes with the axes (B, C, Y, X), but has the "
                f"shape {array.shape} and the type {array.dtype}."
            )
    if one.shape != other.shape:
        raise DataError(
            "`predicted` and `right` must have the same shape, but have "
            f"{one.shape} and {other.shape}."
        )
    starts = range(0, len(one), CHUNK)
    return np.concatenate(
        [measure(*(a[start : start + CHUNK] / WHITE for a in (one, other))) for start in starts]
    )


def _squared_errors(one: Numbers, other: Numbers) -> Numbers:
    return np.asarray(((one - other) ** 2).mean((1, 2, 3)))


def _similarities(one: Numbers, other: Numbers) -> Numbers:
    first, second = (small**2 for small in SMALL)
    weights = _gaussian(_window_size(one.shape[2:]))
    mean_one, mean_other = _blur(one, weights), _blur(other, weights)
    spread_one = _blur(one**2, weights) - mean_one**2
    spread_other = _blur(other**2, weights) - mean_other**2
    shared = _blur(one * other, weights) - mean_one * mean_other
    above = (2 * mean_one * mean_other + first) * (2 * shared + second)
    below = (mean_one**2 + mean_other**2 + first) * (spread_one + spread_other + second)
    return np.asarray((above / below).mean((1, 2, 3)))


def _window_size(sides: tuple[int, ...]) -> int:
    """Return the side of the largest window, odd so that it has a middle."""
    least = min(WINDOW, *sides)
    return least - (least + 1) % 2


def _gaussian(size: int) -> Numbers:
    positions = np.arange(size) - size // 2
    weights = np.exp(-(positions**2) / (2 * DEVIATION**2))
    return np.asarray(weights / weights.sum())


def _blur(pictures: Numbers, weights: Numbers) -> Numbers:
    """Average (B, C, Y, X) under a window, first along the rows, then along the columns."""
    for axis in (2, 3):
        windows = np.lib.stride_tricks.sliding_window_view(pictures, len(weights), axis=axis)
        pictures = windows @ weights
    return pictures
