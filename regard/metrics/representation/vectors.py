"""Vectors beside vectors: which are nearest, whether like finds like, and bags of words."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.metrics.bootstrap import bootstrap_interval, ratio, with_resampling
from regard.metrics.result import Result

Array = NDArray[np.floating[Any]]

NUM_NEIGHBOURS = 15

_CHUNK = 500
_WORD = re.compile(r"\w+")


def cosines(left: Array, right: Array) -> NDArray[np.float64]:
    """Return the cosine of each vector (N, D) with each other one (L, D): (N, L).

    A vector of zeros is like nothing: its cosines are 0.
    """
    return _unit(left) @ _unit(right).T


def _unit(vectors: Array) -> NDArray[np.float64]:
    wide = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    return wide / np.where(lengths > 0, lengths, 1.0)


def nearest(similarities: NDArray[np.float64], num: int) -> NDArray[np.intp]:
    """Return the columns of the `num` greatest of each row, the greatest first.

    Of equal ones the earlier column comes first, so that the result is deterministic.
    """
    return np.argsort(-similarities, axis=1, kind="stable")[:, :num]


def retrieve(
    similarities: NDArray[np.float64],
    groups: Sequence[object],
    *,
    asked: Sequence[int] | None = None,
    num_bootstrap: int = 0,
) -> dict[str, Result]:
    """Measure how well each item of a group of several finds another one of its group.

    Each such item asks, and all other items are candidates, those that have no group of several
    included. Candidates that are as like as the best of the own group count as before it: a
    measure that knows nothing must not win by ties.

    Args:
        similarities: (N, N), how alike items are; an item is never its own candidate.
        groups: (N), the group of each item.
        asked: Which items ask, if not all that are not alone in their group.
        num_bootstrap: Resamples behind the confidence intervals, groups drawn anew; 0 = none.

    Returns:
        Accuracy of the first answer, in percent, and the mean reciprocal rank of the first right
        one, from 0 to 1; `chance` in the details is what a random order would reach.
    """
    numbers = _numbers(groups)
    is_right = (numbers[:, None] == numbers) & ~np.eye(len(numbers), dtype=bool)
    asking = np.flatnonzero(is_right.any(axis=1))
    if asked is not None:
        asking = np.intersect1d(asking, asked)
    if not len(asking):
        raise DataError(
            "Retrieval needs an item that asks and is not alone in its group, but none of the "
            f"{len(numbers):,} items is one."
        )
    asked_of, right = similarities[asking], is_right[asking]
    best = np.where(right, asked_of, -np.inf).max(axis=1, keepdims=True)
    is_before = (asked_of >= best) & ~right
    is_before[np.arange(len(asking)), asking] = False
    ranks = 1 + is_before.sum(axis=1)
    shares = right.sum(axis=1) / (len(numbers) - 1)
    detail = {
        "queries": float(len(asking)),
        "groups": float(len(set(numbers[asking].tolist()))),
        "candidates": float(len(numbers) - 1),
    }
    owners = numbers[asking]
    return {
        "accuracy": _mean(
            "accuracy@1",
            100.0 * (ranks == 1),
            owners,
            detail={**detail, "chance": 100 * float(shares.mean())},
            num_bootstrap=num_bootstrap,
        ),
        "mrr": _mean("MRR", 1 / ranks, owners, detail=detail, num_bootstrap=num_bootstrap),
    }


def _numbers(groups: Sequence[object]) -> NDArray[np.intp]:
    places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    return np.array([places[group] for group in groups])


def _mean(
    name: str,
    values: NDArray[np.float64],
    owners: NDArray[np.intp],
    *,
    detail: dict[str, float],
    num_bootstrap: int,
) -> Result:
    """Return the mean over queries; resampled, all queries of a group come and go together."""
    kinds, rows = np.unique(owners, return_inverse=True)
    sums, counts = np.bincount(rows, weights=values), np.bincount(rows)
    interval = bootstrap_interval(
        lambda times: float(times @ sums / (times @ counts)), len(kinds), num_bootstrap
    )
    signature = with_resampling("similarity:cosine|ties:last", num_bootstrap, " groups")
    return Result(name, float(values.mean()), signature, interval, detail)


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


class BagOfWords:
    """Turns texts into vectors by their words alone (Spärck Jones 1972).

    Case and punctuation do not count. A word's weight is how often it stands in the text, times
    the logarithm of how rare it is among the texts that were learned from.

    Args:
        texts: What word frequencies are learned from.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._num_texts = len(texts)
        self._counts = Counter(word for text in texts for word in set(words_of(text)))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one vector a text, (N, V), over the words that these texts have."""
        bags = [Counter(words_of(text)) for text in texts]
        columns = {word: column for column, word in enumerate(sorted(set().union(*bags)))}
        vectors = np.zeros((len(bags), len(columns)))
        for row, bag in enumerate(bags):
            for word, count in bag.items():
                vectors[row, columns[word]] = count * self._weight(word)
        return vectors

    def _weight(self, word: str) -> float:
        return math.log((1 + self._num_texts) / (1 + self._counts[word])) + 1


def shared_words(left: str, right: str) -> float:
    """Return the share of the words of two texts that both have (Jaccard 1901)."""
    own, other = set(words_of(left)), set(words_of(right))
    return len(own & other) / max(len(own | other), 1)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.casefold())
