"""Whether like lies beside like: the labels of an item's nearest neighbours."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result

NUM_NEIGHBOURS = 15

_CHUNK = 500


def neighbour_accuracy(
    places: ArrayLike,
    labels: Sequence[str],
    *,
    num_neighbours: int = NUM_NEIGHBOURS,
    num_bootstrap: int = 0,
) -> Result:
    """Measure how often the nearest others have an item's label, most of them.

    Where two labels are equally frequent, the one of the nearest decides.

    Args:
        places: (B, D), where items lie.
        labels: What each of them is.
        num_neighbours: How many others are asked.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    vectors = np.asarray(places, np.float64)
    if vectors.ndim != 2 or len(vectors) != len(labels):
        raise DataError(
            f"Each of {len(labels):,} labels must have a place, but places have the shape "
            f"{vectors.shape}."
        )
    if len(labels) <= num_neighbours:
        raise DataError(
            f"Each item needs {num_neighbours} others beside it, but there are {len(labels):,}."
        )
    names, numbers = np.unique(np.array(labels), return_inverse=True)
    right: list[float] = []
    for start in range(0, len(vectors), _CHUNK):
        nearest = _nearest(vectors, range(start, min(start + _CHUNK, len(vectors))), num_neighbours)
        voted = _vote(numbers[nearest], len(names))
        right += (voted == numbers[start : start + _CHUNK]).astype(float).tolist()
    signature = f"neighbours:{num_neighbours}|distance:euclidean|left out:itself"
    return ratio("neighbour accuracy", right, signature=signature, num_bootstrap=num_bootstrap)


def _nearest(vectors: NDArray[np.float64], rows: range, num: int) -> NDArray[np.intp]:
    """Return the nearest others of some items, the nearest first: (B, K)."""
    some = vectors[rows.start : rows.stop]
    distances = (some**2).sum(1)[:, None] - 2 * some @ vectors.T + (vectors**2).sum(1)
    distances[np.arange(len(some)), rows] = np.inf
    found = np.argpartition(distances, num - 1, axis=1)[:, :num]
    order = np.argsort(np.take_along_axis(distances, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def _vote(numbers: NDArray[np.intp], num_labels: int) -> NDArray[np.intp]:
    """Return the most frequent label of each row of neighbours (B, K)."""
    num = numbers.shape[1]
    # A little more for the nearer: less in sum than one vote, yet more than all that follow.
    weights = 1 + 0.5 ** np.arange(2, num + 2)
    votes = np.zeros((len(numbers), num_labels))
    for rank in range(num):
        votes[np.arange(len(numbers)), numbers[:, rank]] += weights[rank]
    return np.asarray(votes.argmax(1))
