"""Inputs of plots: escaped labels, checked weights, resized images."""

import html
import unicodedata
from collections.abc import Sequence
from typing import Any, NewType

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from rich.cells import cell_len, set_cell_size

from regard.core.errors import DataError
from regard.core.terminal import clean

Markup = NewType("Markup", str)
"""HTML or SVG in which all text from users is escaped."""

Points = Sequence[tuple[float, float]]
"""Pairs of x and y."""

Pixels = NDArray[np.uint8]
"""(Y, X, 3): red, green and blue."""

MAX_WIDTH = 24
"""Maximum width of a label in terminal cells; longer labels are truncated."""

MAX_SIDE = 168
"""Longest side of an image in a plot, in pixels; limits the file size."""

_TINY = 64

_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors of Unicode."""


def escape(text: object) -> Markup:
    """Escape a value for HTML or SVG, including attributes."""
    return Markup(html.escape(clean(text)))


def label(text: object, width: int = MAX_WIDTH) -> str:
    """Return a value as clean text, truncated to a number of terminal cells with an ellipsis."""
    word = _show_invisible(clean(text))
    return word if cell_len(word) <= width else set_cell_size(word, width - 1).rstrip() + "…"


def _show_invisible(word: str) -> str:
    """Return a word in which something is visible, also if it is a joiner or a mark alone."""
    if word and all(map(_is_invisible, word)):
        return " ".join(f"U+{ord(character):04X}" for character in word)
    return f"◌{word}" if unicodedata.category(word[:1] or " ").startswith("M") else word


def _is_invisible(character: str) -> bool:
    """Return whether a character changes others only: format controls, variation selectors."""
    return unicodedata.category(character) == "Cf" or character in _SELECTORS


def check_weights(weights: ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> NDArray[Any]:
    """Return the weights as an array; raise `DataError` if the labels do not match.

    Args:
        weights: (T, S), finite numbers.
        rows: Target words.
        columns: Source words.
    """
    if not rows or not columns:
        raise DataError(
            "A map needs at least one target word and one source word, "
            f"but there are {len(rows)} and {len(columns)}."
        )
    array = np.asarray(weights, dtype=float)
    if array.shape != (len(rows), len(columns)):
        raise DataError(
            "`weights` must have one row per target word and one column per source word, "
            f"{(len(rows), len(columns))}, but has the shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise DataError("`weights` must be finite numbers, but some are infinite or NaN.")
    return array


def find_vmax(weights: NDArray[Any]) -> float:
    """Return the upper end of the colour scale: the largest weight, or 1 if all are zero.

    If there are negative weights, the colours of both signs end at the largest absolute value.
    """
    largest = max(float(weights.max()), -float(weights.min()))
    return largest if largest > 0 else 1.0


def check_image(image: ArrayLike) -> Pixels:
    """Return an image as pixels; raise `DataError` for other shapes and types.

    Args:
        image: (Y, X, 3), or (Y, X) or (Y, X, 1) in grey; uint8.
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


def resize_image(pixels: Pixels) -> Pixels:
    """Resize an image to plot size.

    Pixels of tiny images are repeated; larger images are interpolated.

    Args:
        pixels: (Y, X, 3).
    """
    height, width = pixels.shape[:2]
    longest = max(height, width)
    if longest <= _TINY:
        factor = MAX_SIDE // longest
        return pixels.repeat(factor, axis=0).repeat(factor, axis=1)
    size = (max(1, round(width * MAX_SIDE / longest)), max(1, round(height * MAX_SIDE / longest)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS))


if __name__ == "__main__":
    print(label("Donaudampfschifffahrtsgesellschaft"), escape("<b> \x1b[2J & co."))
    print(find_vmax(check_weights([[0.7, 0.3], [0.1, 0.9]], ["das", "Haus"], ["the", "house"])))
    print(resize_image(check_image(np.eye(2, dtype=np.uint8))).shape)
