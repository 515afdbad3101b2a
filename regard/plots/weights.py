"""Weights that are to be drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError


def check_weights(weights: ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> NDArray[Any]:
    """Return the weights as an array, or raise a `DataError` if the labels do not fit them.

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


def greatest(weights: NDArray[Any]) -> float:
    """Return the weight that is drawn darkest; 1 if all are zero."""
    return float(weights.max()) if weights.max() > 0 else 1.0


if __name__ == "__main__":
    demo = check_weights([[0.7, 0.3], [0.1, 0.9]], ["das", "Haus"], ["the", "house"])
    print(f"The darkest cell is {greatest(demo)}.")
