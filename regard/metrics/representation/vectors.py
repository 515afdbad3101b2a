"""Vectors beside vectors: how alike they are, which is nearest, and whether like finds like."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.metrics.bootstrap import bootstrap_interval, with_resampling
from regard.metrics.result import Result

Array = NDArray[np.floating[Any]]


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

    Of equal ones the earlier column comes first, so that the answer never hangs on chance.
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
