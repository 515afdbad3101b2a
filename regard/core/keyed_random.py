"""Chance that hangs on names, not on order: the same names always give the same draw.

A draw for an example depends on the seed, the epoch and the example's number alone. So it does not
matter which examples share its batch, in which order they come, or whether training was resumed.
"""

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.float64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def draw(names: tuple[int, ...], rows: NDArray[np.int64], num: int) -> Draws:
    """Draw numbers evenly from 0 up to 1, `num` for each row.

    Args:
        names: What the draws hang on beside the row: a seed, an epoch, a purpose.
        rows: The numbers of examples.
        num: How many numbers a row; more of them leave the first ones as they are.
    """
    # Sums and products are meant to run over.
    with np.errstate(over="ignore"):
        state = _mix(np.zeros(1, np.uint64))
        for name in names:
            state = _mix(state ^ np.uint64(name))
        by_row = _mix(state ^ rows.astype(np.uint64))
        columns = _mix(by_row[:, None] + _STEP * np.arange(1, num + 1, dtype=np.uint64))
    return (columns >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all (splitmix64, Steele et al. 2014)."""
    state = state + _STEP
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))
