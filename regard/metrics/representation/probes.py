"""Linear probes: how much of something can be read off vectors by a weighted sum alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError

PENALTIES = tuple(10.0**power for power in range(-3, 6))
"""Penalties that are tried, as multiples of what a standardised column weighs."""

Array = NDArray[np.floating[Any]]


class LinearProbe:
    """Ridge regression; the penalty is the one that foretells each left-out training row best.

    Hoerl and Kennard 1970. Everything is in closed form: there is no chance and no step size.

    Args:
        vectors: (N, D), what is read.
        values: (N,), what is to be read off.
    """

    def __init__(self, vectors: Array, values: Array) -> None:
        if len(vectors) < 2:
            raise DataError(f"A probe needs at least 2 vectors to learn, but has {len(vectors)}.")
        wide = np.asarray(vectors, dtype=np.float64)
        self._mean = wide.mean(axis=0)
        deviation = wide.std(axis=0)
        self._scale = np.where(deviation > 1e-9, deviation, np.inf)
        self._offset = float(np.mean(values))
        centred = np.asarray(values, dtype=np.float64) - self._offset
        left, sizes, right = np.linalg.svd((wide - self._mean) / self._scale, full_matrices=False)
        along = left.T @ centred
        squares = sizes**2
        best = np.inf
        for penalty in PENALTIES:
            kept = squares / (squares + penalty)
            # What a row's own value counts in its prediction: without it, the error is larger.
            leverage = (left**2) @ kept + 1 / len(wide)
            error = np.mean(((centred - left @ (kept * along)) / (1 - leverage).clip(1e-9)) ** 2)
            if error < best:
                best = error
                shrunk = np.divide(sizes, squares + penalty)
                self._weights = right.T @ (shrunk * along)

    def __call__(self, vectors: Array) -> NDArray[np.float64]:
        """Read the values (N,) off vectors (N, D)."""
        found: NDArray[np.float64] = (vectors - self._mean) / self._scale @ self._weights
        return found + self._offset


def explained(found: Array, values: Array) -> float:
    """Return R²: the share of the values' variance that is foretold; below 0, worse than none."""
    total = float(np.sum((values - np.mean(values)) ** 2))
    if total == 0:
        raise DataError("R² needs values that differ, but all of them are equal.")
    return 1 - float(np.sum((values - found) ** 2)) / total
