"""Random numbers keyed by (seed, epoch, example): the same key always gives the same numbers.

The numbers of an example depend on the seed, the epoch and the example's number alone, not on the
examples in its batch, their order, or whether training was resumed.
"""

import numpy as np
from numpy.typing import NDArray

Uniform = NDArray[np.float64]
"""Random numbers in [0, 1)."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def uniform(key: tuple[int, ...], rows: NDArray[np.int64], num: int) -> Uniform:
    """Sample `num` uniform numbers in [0, 1) for each row: (B, num).

    Args:
        key: Part of the key shared by all rows: a seed, an epoch, a purpose.
        rows: Indices of the examples.
        num: Numbers per row. The first numbers do not depend on `num`.
    """
    # Integer overflow is intended.
    with np.errstate(over="ignore"):
        state = _mix(np.zeros(1, np.uint64))
        for part in key:
            state = _mix(state ^ np.uint64(part))
        by_row = _mix(state ^ rows.astype(np.uint64))
        columns = _mix(by_row[:, None] + _STEP * np.arange(1, num + 1, dtype=np.uint64))
    return (columns >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of a state (splitmix64, Steele et al. 2014)."""
    state = state + _STEP
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))
