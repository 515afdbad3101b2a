"""How sure a measured number is: the same measure on test sets drawn anew from its sentences."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least
from regard.metrics.result import Result

SEED = 12345
"""Seed of the drawing, sacrebleu's."""


def draws(
    num_sentences: int, num_bootstrap: int, *, seed: int = SEED
) -> Iterator[NDArray[np.intp]]:
    """Draw test sets with replacement; yield for each how often every sentence is in it.

    Efron 1979; Koehn 2004. The samples are those that sacrebleu draws from the same seed.
    """
    generator = np.random.default_rng(seed)
    for _ in range(num_bootstrap):
        rows = generator.choice(num_sentences, num_sentences)
        yield np.bincount(rows, minlength=num_sentences)


def interval_of(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Return what the middle 95 % of resampled values lie between."""
    ordered = np.sort(values)
    outside = len(ordered) // 40
    return float(ordered[outside]), float(ordered[-1 - outside])


def ratio(
    name: str,
    parts: Sequence[float],
    wholes: Sequence[float],
    *,
    signature: str,
    num_bootstrap: int,
    scale: float = 100,
    detail: dict[str, float] | None = None,
) -> Result:
    """Return the sum of all parts by the sum of all wholes: error rates, shares and means.

    Args:
        name: What papers call it.
        parts: For each sentence what counts: its edits, its score, 1 if it is right.
        wholes: For each sentence what it counts among: its length, or 1. A sample whose wholes
            are all 0 counts as one of 1.
        signature: How it was measured, without the resampling.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
        scale: The unit: 100 for percent.
        detail: The numbers behind the value.
    """
    at_least("num_bootstrap", num_bootstrap, 0)
    interval = None
    if num_bootstrap:
        signature += f"|bs:{num_bootstrap}|seed:{SEED}"
        counts = np.array([parts, wholes], dtype=float)
        sums = np.array([counts @ drawn for drawn in draws(len(parts), num_bootstrap)])
        interval = interval_of(scale * sums[:, 0] / np.maximum(sums[:, 1], 1))
    return Result(
        name=name,
        value=scale * sum(parts) / sum(wholes),
        signature=signature,
        interval=interval,
        detail=detail or {},
    )
