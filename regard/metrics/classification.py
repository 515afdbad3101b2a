"""Labels against labels: accuracy with its interval, F1, and which label is taken for which."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.metrics.result import Result

Z = 1.959963984540054
"""Deviations of the normal distribution that hold 95 % of it."""

SEED = 0
"""Seed of the resampling."""


def confusion(predicted: Sequence[str], right: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count which label was taken for which: right label → predicted label → how often.

    Every label that occurs on either side has a row and a column, in alphabetical order.
    """
    _check(predicted, right)
    names = sorted({*predicted, *right})
    counts = {row: dict.fromkeys(names, 0) for row in names}
    for guess, truth in zip(predicted, right, strict=True):
        counts[truth][guess] += 1
    return counts


def label_accuracy(predicted: Sequence[str], right: Sequence[str]) -> Result:
    """Measure how many labels are right, in percent, with the interval of Wilson (1927)."""
    _check(predicted, right)
    hits = [guess == truth for guess, truth in zip(predicted, right, strict=True)]
    return _accuracy("accuracy", sum(hits), len(hits))


def top_accuracy(candidates: Sequence[Sequence[str]], right: Sequence[str]) -> Result:
    """Measure how many labels are among their candidates, in percent, as `label_accuracy` does.

    Args:
        candidates: For each example the likeliest labels; the name of the result tells how many.
        right: The label each should be.
    """
    _check(candidates, right)
    hits = [truth in guesses for guesses, truth in zip(candidates, right, strict=True)]
    return _accuracy(f"accuracy@{max(map(len, candidates))}", sum(hits), len(hits))


def wilson(num_right: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, which stays sensible near 0 and 1 (Wilson 1927)."""
    share = num_right / count
    spread = Z * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    middle, scale = share + Z**2 / (2 * count), 1 + Z**2 / count
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def macro_f1(predicted: Sequence[str], right: Sequence[str], *, num_bootstrap: int = 0) -> Result:
    """Measure F1 as the plain mean over labels, in percent; its detail tells each label's share.

    A label that is never predicted, or never right, has an F1 of 0.

    Args:
        predicted: One label each.
        right: The label each should be.
        num_bootstrap: Samples behind the confidence interval; 0 = none.
    """
    counts = confusion(predicted, right)
    table = np.array([list(row.values()) for row in counts.values()], dtype=float)
    precision, recall, f1 = _shares(table)
    detail = {
        f"{share} {name}": 100 * float(value)
        for share, values in (("precision", precision), ("recall", recall), ("f1", f1))
        for name, value in zip(counts, values, strict=True)
    }
    interval, how = None, "none"
    if num_bootstrap:
        # Drawing examples anew is drawing the cells of the table anew, by their shares.
        generator = np.random.default_rng(SEED)
        total = len(right)
        drawn = generator.multinomial(total, table.ravel() / total, size=num_bootstrap)
        values = 100 * _shares(drawn.reshape(-1, *table.shape).astype(float))[2].mean(-1)
        low, high = np.percentile(values, [2.5, 97.5])
        interval, how = (float(low), float(high)), f"bootstrap.{num_bootstrap}|seed:{SEED}"
    return Result(
        name="macro F1",
        value=100 * float(f1.mean()),
        signature=f"average:macro|labels:{len(counts)}|interval:{how}",
        interval=interval,
        detail=detail,
    )


def _accuracy(name: str, num_right: int, count: int) -> Result:
    low, high = wilson(num_right, count)
    return Result(
        name=name,
        value=100 * num_right / count,
        signature="unit:label|interval:wilson",
        interval=(100 * low, 100 * high),
        detail={"right": num_right, "count": count},
    )


Shares = NDArray[np.float64]


def _shares(table: Shares) -> tuple[Shares, Shares, Shares]:
    """Return precision, recall and F1 of each label from tables (..., right, predicted)."""
    hits = np.diagonal(table, axis1=-2, axis2=-1)
    predicted, right = table.sum(-2), table.sum(-1)
    precision = hits / np.maximum(predicted, 1)
    recall = hits / np.maximum(right, 1)
    return precision, recall, 2 * hits / np.maximum(predicted + right, 1)


def _check(predicted: Sequence[object], right: Sequence[str]) -> None:
    if len(predicted) != len(right) or not right:
        raise DataError(
            "There must be as many predicted labels as right ones, and one at least, "
            f"but there are {len(predicted):,} and {len(right):,}."
        )
