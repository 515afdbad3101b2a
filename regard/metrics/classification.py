"""Classification metrics: accuracy with a confidence interval, macro F1, confusion matrix."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.metrics.result import Result

Z = 1.959963984540054
"""Half-width, in standard deviations, of the central 95 % of a normal distribution."""

SEED = 0
"""Seed of the resampling."""


def confusion(predicted: Sequence[str], targets: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the confusion matrix: true label → predicted label → count.

    Every label that is a prediction or a target has a row and a column, in alphabetical order.
    """
    _check(predicted, targets)
    names = sorted({*predicted, *targets})
    counts = {row: dict.fromkeys(names, 0) for row in names}
    for prediction, target in zip(predicted, targets, strict=True):
        counts[target][prediction] += 1
    return counts


def label_accuracy(predicted: Sequence[str], targets: Sequence[str]) -> Result:
    """Compute the accuracy in percent, with the confidence interval of Wilson (1927)."""
    _check(predicted, targets)
    hits = [label == target for label, target in zip(predicted, targets, strict=True)]
    return _accuracy("accuracy", sum(hits), len(hits))


def top_accuracy(candidates: Sequence[Sequence[str]], targets: Sequence[str]) -> Result:
    """Compute the top-k accuracy in percent, with the interval of `label_accuracy`.

    Args:
        candidates: The k most likely labels of each example; k is part of the result's name.
        targets: The true label of each example.
    """
    _check(candidates, targets)
    hits = [target in labels for labels, target in zip(candidates, targets, strict=True)]
    return _accuracy(f"accuracy@{max(map(len, candidates))}", sum(hits), len(hits))


def wilson(num_right: int, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a proportion (Wilson 1927)."""
    share = num_right / count
    spread = Z * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    middle, scale = share + Z**2 / (2 * count), 1 + Z**2 / count
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def macro_f1(predicted: Sequence[str], targets: Sequence[str], *, num_bootstrap: int = 0) -> Result:
    """Compute F1 in percent, averaged over labels; the detail has the values of each label.

    A label that is never predicted, or never predicted correctly, has an F1 of 0.

    Args:
        predicted: The predicted label of each example.
        targets: The true label of each example.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    counts = confusion(predicted, targets)
    table = np.array([list(row.values()) for row in counts.values()], dtype=float)
    precision, recall, f1 = _precision_recall_f1(table)
    detail = {
        f"{key} {name}": 100 * float(value)
        for key, values in (("precision", precision), ("recall", recall), ("f1", f1))
        for name, value in zip(counts, values, strict=True)
    }
    interval, method = None, "none"
    if num_bootstrap:
        # Resampling examples is a multinomial sample over the cells of the confusion matrix.
        generator = np.random.default_rng(SEED)
        total = len(targets)
        samples = generator.multinomial(total, table.ravel() / total, size=num_bootstrap)
        tables = samples.reshape(-1, *table.shape).astype(float)
        values = 100 * _precision_recall_f1(tables)[2].mean(-1)
        low, high = np.percentile(values, [2.5, 97.5])
        interval, method = (float(low), float(high)), f"bootstrap.{num_bootstrap}|seed:{SEED}"
    return Result(
        name="macro F1",
        value=100 * float(f1.mean()),
        signature=f"average:macro|labels:{len(counts)}|interval:{method}",
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


Values = NDArray[np.float64]


def _precision_recall_f1(table: Values) -> tuple[Values, Values, Values]:
    """Return precision, recall and F1 of each label from tables (..., true, predicted)."""
    hits = np.diagonal(table, axis1=-2, axis2=-1)
    predicted, targets = table.sum(-2), table.sum(-1)
    precision = hits / np.maximum(predicted, 1)
    recall = hits / np.maximum(targets, 1)
    return precision, recall, 2 * hits / np.maximum(predicted + targets, 1)


def _check(predicted: Sequence[object], targets: Sequence[str]) -> None:
    if len(predicted) != len(targets) or not targets:
        raise DataError(
            "There must be as many predicted labels as true labels, and at least one, "
            f"but there are {len(predicted):,} and {len(targets):,}."
        )
