"""Similarity of vectors: nearest neighbours, retrieval accuracy and TF-IDF vectors."""

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
    """Return the cosine similarity of vectors (N, D) and (L, D): (N, L).

    The cosine of a zero vector is 0.
    """
    return _unit(left) @ _unit(right).T


def _unit(vectors: Array) -> NDArray[np.float64]:
    array = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(array, axis=-1, keepdims=True)
    return array / np.where(norms > 0, norms, 1.0)


def nearest(similarities: NDArray[np.float64], num: int) -> NDArray[np.intp]:
    """Return the columns of the `num` largest values of each row, largest first.

    Ties are broken by column, so the result is deterministic.
    """
    return np.argsort(-similarities, axis=1, kind="stable")[:, :num]


def retrieve(
    similarities: NDArray[np.float64],
    groups: Sequence[object],
    *,
    queries: Sequence[int] | None = None,
    num_bootstrap: int = 0,
) -> dict[str, Result]:
    """Compute how well items retrieve other items of their group.

    Queries are items in groups of at least two; all other items are candidates. Candidates of
    other groups that tie with the best candidate of the query's group rank before it, so that a
    constant similarity does not score.

    Args:
        similarities: (N, N); an item is never its own candidate.
        groups: (N), the group of each item.
        queries: Indices of the queries; all items in groups of at least two if not given.
        num_bootstrap: Number of bootstrap resamples of groups; 0 means no confidence interval.

    Returns:
        Accuracy of the first candidate, in percent, and mean reciprocal rank of the first correct
        one, 0 to 1. `chance` in the detail is the expected accuracy of a random ranking.
    """
    ids = _group_ids(groups)
    is_relevant = (ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool)
    rows = np.flatnonzero(is_relevant.any(axis=1))
    if queries is not None:
        rows = np.intersect1d(rows, queries)
    if not len(rows):
        raise DataError(
            "Retrieval needs a query that shares its group with another item, but none of the "
            f"{len(ids):,} items does."
        )
    scores, relevant = similarities[rows], is_relevant[rows]
    best = np.where(relevant, scores, -np.inf).max(axis=1, keepdims=True)
    is_before = (scores >= best) & ~relevant
    is_before[np.arange(len(rows)), rows] = False
    ranks = 1 + is_before.sum(axis=1)
    chances = relevant.sum(axis=1) / (len(ids) - 1)
    detail = {
        "queries": float(len(rows)),
        "groups": float(len(set(ids[rows].tolist()))),
        "candidates": float(len(ids) - 1),
    }
    query_groups = ids[rows]
    return {
        "accuracy": _mean(
            "accuracy@1",
            100.0 * (ranks == 1),
            query_groups,
            detail={**detail, "chance": 100 * float(chances.mean())},
            num_bootstrap=num_bootstrap,
        ),
        "mrr": _mean("MRR", 1 / ranks, query_groups, detail=detail, num_bootstrap=num_bootstrap),
    }


def _group_ids(groups: Sequence[object]) -> NDArray[np.intp]:
    ids = {group: index for index, group in enumerate(dict.fromkeys(groups))}
    return np.array([ids[group] for group in groups])


def _mean(
    name: str,
    values: NDArray[np.float64],
    groups: NDArray[np.intp],
    *,
    detail: dict[str, float],
    num_bootstrap: int,
) -> Result:
    """Return the mean over queries; resampling is by group."""
    names, rows = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(rows, weights=values), np.bincount(rows)
    interval = bootstrap_interval(
        lambda times: float(times @ sums / (times @ counts)), len(names), num_bootstrap
    )
    signature = with_resampling("similarity:cosine|ties:last", num_bootstrap, " groups")
    return Result(name, float(values.mean()), signature, interval, detail)


def neighbour_accuracy(
    vectors: ArrayLike,
    labels: Sequence[str],
    *,
    num_neighbours: int = NUM_NEIGHBOURS,
    num_bootstrap: int = 0,
) -> Result:
    """Compute the leave-one-out accuracy of a k-nearest-neighbour classifier, in percent.

    Ties between labels are broken by the nearest neighbour.

    Args:
        vectors: (B, D).
        labels: Label of each vector.
        num_neighbours: Number of neighbours that vote.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    points = np.asarray(vectors, np.float64)
    if points.ndim != 2 or len(points) != len(labels):
        raise DataError(
            f"Each of {len(labels):,} labels must have a vector, but `vectors` has the shape "
            f"{points.shape}."
        )
    if len(labels) <= num_neighbours:
        raise DataError(
            f"There must be more than {num_neighbours} items, one for each neighbour and the item "
            f"itself, but there are {len(labels):,}."
        )
    names, ids = np.unique(np.array(labels), return_inverse=True)
    hits: list[float] = []
    for start in range(0, len(points), _CHUNK):
        rows = range(start, min(start + _CHUNK, len(points)))
        predicted = _vote(ids[_nearest(points, rows, num_neighbours)], len(names))
        hits += (predicted == ids[start : start + _CHUNK]).astype(float).tolist()
    signature = f"neighbours:{num_neighbours}|distance:euclidean|left out:itself"
    return ratio("neighbour accuracy", hits, signature=signature, num_bootstrap=num_bootstrap)


def _nearest(vectors: NDArray[np.float64], rows: range, num: int) -> NDArray[np.intp]:
    """Return the nearest neighbours of some rows, nearest first, without the rows: (B, K)."""
    queries = vectors[rows.start : rows.stop]
    distances = (queries**2).sum(1)[:, None] - 2 * queries @ vectors.T + (vectors**2).sum(1)
    distances[np.arange(len(queries)), rows] = np.inf
    columns = np.argpartition(distances, num - 1, axis=1)[:, :num]
    order = np.argsort(np.take_along_axis(distances, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def _vote(labels: NDArray[np.intp], num_labels: int) -> NDArray[np.intp]:
    """Return the most frequent label of each row of neighbours (B, K)."""
    num = labels.shape[1]
    # Nearer neighbours weigh slightly more to break ties: in total less than one vote.
    weights = 1 + 0.5 ** np.arange(2, num + 2)
    votes = np.zeros((len(labels), num_labels))
    for rank in range(num):
        votes[np.arange(len(labels)), labels[:, rank]] += weights[rank]
    return np.asarray(votes.argmax(1))


class BagOfWords:
    """TF-IDF vectors of texts (Spärck Jones 1972), without case and punctuation.

    Args:
        texts: Texts from which document frequencies are counted.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._num_texts = len(texts)
        self._counts = Counter(word for text in texts for word in set(words_of(text)))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one vector per text, (N, V), over the words of these texts."""
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
    """Return the Jaccard similarity of the word sets of two texts (Jaccard 1901)."""
    first, second = set(words_of(left)), set(words_of(right))
    return len(first & second) / max(len(first | second), 1)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.casefold())
