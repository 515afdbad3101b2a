"""Bootstrap confidence intervals of metrics, by resampling the sentences of a test set."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least
from regard.metrics.result import Result

SEED = 12345
"""Seed of the resampling, the default of sacrebleu."""


def resamples(
    num_sentences: int, num_bootstrap: int, *, seed: int = SEED
) -> Iterator[NDArray[np.intp]]:
    """Resample a test set with replacement; yield the count of each sentence per resample.

    Efron 1979; Koehn 2004. The resamples equal those of sacrebleu with the same seed.
    """
    generator = np.random.default_rng(seed)
    for _ in range(num_bootstrap):
        rows = generator.choice(num_sentences, num_sentences)
        yield np.bincount(rows, minlength=num_sentences)


def percentile_interval(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Return the bounds of the central 95 % of resampled values."""
    ordered = np.sort(values)
    num_outside = len(ordered) // 40
    return float(ordered[num_outside]), float(ordered[-1 - num_outside])


def bootstrap_interval(
    score: Callable[[NDArray[np.intp]], float],
    num_sentences: int,
    num_bootstrap: int,
    *,
    seed: int = SEED,
) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of a score; None without resamples.

    Args:
        score: Computes the score of a resample from the count of each sentence.
        num_sentences: Number of sentences.
        num_bootstrap: Number of resamples; 0 means no interval.
        seed: Seed of the resampling.
    """
    at_least("num_bootstrap", num_bootstrap, 0)
    values = [score(counts) for counts in resamples(num_sentences, num_bootstrap, seed=seed)]
    return percentile_interval(values) if values else None


def with_resampling(signature: str, num_bootstrap: int, unit: str = "") -> str:
    """Append the number of resamples and their seed to a signature, unless there are none."""
    return f"{signature}|bs:{num_bootstrap}{unit}|seed:{SEED}" if num_bootstrap else signature


def ratio(
    name: str,
    numerators: Sequence[float],
    denominators: Sequence[float] | None = None,
    *,
    signature: str,
    num_bootstrap: int,
    scale: float = 100,
    sums: tuple[str, str] | None = None,
    detail: Mapping[str, float] | None = None,
) -> Result:
    """Return the sum of numerators divided by the sum of denominators: error rates and means.

    Args:
        name: Name of the metric.
        numerators: Value of each sentence: its edits, its score, 1 if it is correct.
        denominators: Normaliser of each sentence, such as its length; 1 if not given. A resample
            whose denominators sum to 0 is divided by 1.
        signature: Settings of the metric, without the resampling.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
        scale: Factor of the ratio: 100 for percent.
        sums: Keys of the detail for the two sums, if it has them.
        detail: Further values for the detail.
    """
    denominators = [1] * len(numerators) if denominators is None else denominators
    values = np.array([numerators, denominators], dtype=float)

    def score(counts: NDArray[np.intp]) -> float:
        numerator, denominator = values @ counts
        return float(scale * numerator / max(denominator, 1))

    interval = bootstrap_interval(score, len(numerators), num_bootstrap)
    value = scale * sum(numerators) / sum(denominators)
    signature = with_resampling(signature, num_bootstrap)
    named = dict(zip(sums or (), (sum(numerators), sum(denominators)), strict=False))
    return Result(name, value, signature, interval, {**named, **(detail or {})})
