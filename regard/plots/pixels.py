"""Images as arrays of bytes: checked, and brought to the size of a drawing."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from regard.core.errors import DataError

Pixels = NDArray[np.uint8]
"""(Y, X, 3): red, green and blue."""

KEPT = 168
"""Longest side of an image in a drawing, whose file is to stay small."""

_TINY = 64


def check_image(image: ArrayLike) -> Pixels:
    """Return an image as pixels, or raise a `DataError`.

    Args:
        image: (Y, X, 3), or (Y, X) or (Y, X, 1) in grey; bytes.
    """
    array = np.asarray(image)
    if array.dtype != np.uint8 or not array.size:
        raise DataError(
            "`image` must hold bytes of 0 to 255, but has the shape "
            f"{array.shape} and the type {array.dtype}."
        )
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[2] not in (1, 3):
        raise DataError(
            "`image` must have rows, columns and 1 or 3 channels, but has the shape "
            f"{np.shape(image)}."
        )
    return np.broadcast_to(array, (*array.shape[:2], 3))


def fit(pixels: Pixels) -> Pixels:
    """Bring an image to the size of a drawing.

    Of a tiny one every pixel becomes a square, as there is no more to see; others are smoothed.

    Args:
        pixels: (Y, X, 3).
    """
    height, width = pixels.shape[:2]
    longest = max(height, width)
    if longest <= _TINY:
        times = KEPT // longest
        return pixels.repeat(times, axis=0).repeat(times, axis=1)
    size = (max(1, round(width * KEPT / longest)), max(1, round(height * KEPT / longest)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS))


if __name__ == "__main__":
    print(fit(check_image(np.eye(2, dtype=np.uint8))).shape)
