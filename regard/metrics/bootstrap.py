"""Bootstrap confidence intervals: the same metric on test sets resampled from its sentences."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least
from regard.metrics.result import Result

SEED = 12345
"""Seed of the resampling, sacrebleu's."""


def resamples(
    num_sentences: int, num_bootstrap: int, *, seed: int = SEED
) -> Iterator[NDArray[np.intp]]:
    """Sample test sets with replacement; yield for each how often every sentence is in it.

    Efron 1979; Koehn 2004. The samples are those of sacrebleu with the same seed.
    """
    generator = np.random.default_rng(seed)
    for _ in range(num_bootstrap):
        rows = generator.choice(num_sentences, num_sentences)
        yield np.bincount(rows, minlength=num_sentences)


def percentile_interval(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the middle 95 % of resampled values."""
    ordered = np.sort(values)
    outside = len(ordered) // 40
    return float(ordered[outside]), float(ordered[-1 - outside])


def bootstrap_interval(
    score: Callable[[NDArray[np.intp]], float],
    num_sentences: int,
    num_bootstrap: int,
    *,
    seed: int = SEED,
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of a score; None without resamples.

    Args:
        score: Computes the score of a test set from how often it has each sentence.
        num_sentences: Number of sentences.
        num_bootstrap: Number of resamples; 0 means no interval.
        seed: Seed of the resampling.
    """
    at_least("num_bootstrap", num_bootstrap, 0)
    samples = resamples(num_sentences, num_bootstrap, seed=seed)
    values = [score(times) for times in samples]
    return percentile_interval(values) if values else None


def with_resampling(signature: str, num_bootstrap: int, unit: str = "") -> str:
    """Return a signature that names the resampling, if there is one."""
    return f"{signature}|bs:{num_bootstrap}{unit}|seed:{SEED}" if num_bootstrap else signature


def ratio(
    name: str,
    parts: Sequence[float],
    wholes: Sequence[float] | None = None,
    *,
    signature: str,
    num_bootstrap: int,
    scale: float = 100,
    sums: tuple[str, str] | None = None,
    detail: Mapping[str, float] | None = None,
) -> Result:
    """Return the sum of all parts by the sum of all wholes: error rates, shares and means.

    Args:
        name: What papers call it.
        parts: For each sentence what counts: its edits, its score, 1 if it is right.
        wholes: For each sentence what it counts among, such as its length; 1 if not given. A
            sample whose wholes are all 0 counts as one of 1.
        signature: How it was measured, without the resampling.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
        scale: The unit: 100 for percent.
        sums: What the detail calls the sums of all parts and of all wholes, if it has them.
        detail: Further numbers behind the value.
    """
    wholes = [1] * len(parts) if wholes is None else wholes
    counts = np.array([parts, wholes], dtype=float)

    def score(times: NDArray[np.intp]) -> float:
        part, whole = counts @ times
        return float(scale * part / max(whole, 1))

    interval = bootstrap_interval(score, len(parts), num_bootstrap)
    value = scale * sum(parts) / sum(wholes)
    signature = with_resampling(signature, num_bootstrap)
    named = dict(zip(sums or (), (sum(parts), sum(wholes)), strict=False))
    return Result(name, value, signature, interval, {**named, **(detail or {})})
