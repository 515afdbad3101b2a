"""Result of a metric, its bootstrap confidence interval, and the check of every metric's inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least, to_dict
from regard.core.errors import DataError

Texts = Sequence[str]
"""One hypothesis per sentence."""

References = Sequence[Sequence[str]]
"""For each hypothesis its references; their number may differ."""

SEED = 12345
"""Seed of the resampling, sacrebleu's."""


@dataclass(frozen=True)
class Result:
    """A measured number with all that is needed to measure it again."""

    name: str
    """What papers call it: BLEU, chrF2, WER."""
    value: float
    """In the unit papers use: percent, but lecture BLEU, AER and AUC from 0 to 1, CIDEr to 10."""
    signature: str
    """How it was measured, as `key:value` pairs joined by `|`."""
    interval: tuple[float, float] | None = None
    """95 % confidence interval, where one was asked for."""
    detail: dict[str, float] = field(default_factory=dict)
    """The numbers behind the value."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; what is absent is left out."""
        values = to_dict(self)
        if not self.detail:
            del values["detail"]
        return values

    def __str__(self) -> str:
        spread = ""
        if self.interval is not None:
            low, high = self.interval
            spread = f" ± {(high - low) / 2:.2g}"
        # Four significant digits suit percentages (37.92) and shares (0.6814) alike.
        return f"{self.name} {self.value:#.4g}{spread}  {self.signature}"


@dataclass(frozen=True)
class Group:
    """One part of a test set and what was measured on it."""

    name: str
    """What its sentences have in common."""
    count: int
    """Number of its sentences, or of what else it gathers."""
    results: dict[str, Result] = field(default_factory=dict)
    """Each measure by its name."""
    place: float | None = None
    """Where it stands on an axis, if there is one: its mean length, the middle of its stretch."""


class Metric(Protocol):
    """Hypotheses and, for each of them, its references → Result."""

    def __call__(
        self, hypotheses: Texts, references: References, *, num_bootstrap: int = 0
    ) -> Result:
        """Measure; with resamples there is a 95 % confidence interval, named in the signature."""
        ...


def check_equal_length(sides: Mapping[str, Sized]) -> None:
    """Raise a `DataError` unless two sequences, given by name, have equal length."""
    first, second = map(len, sides.values())
    if first != second:
        names = " and ".join(f"`{name}`" for name in sides)
        raise DataError(f"{names} must have equal length, but there are {first:,} and {second:,}.")


def check_references(hypotheses: Sequence[object], references: References) -> None:
    """Raise a `DataError` unless there are hypotheses and each has a list of references."""
    if not hypotheses:
        raise DataError("`hypotheses` must hold at least one sentence, but is empty.")
    check_equal_length({"hypotheses": hypotheses, "references": references})
    for position, sentences in enumerate(references):
        if isinstance(sentences, str):
            raise DataError(
                f"`references[{position}]` must be a list of sentences, but is the sentence "
                f"{sentences!r}. Put it into a list, even if it is the only one."
            )
        if not sentences:
            raise DataError(f"`references[{position}]` must hold at least one sentence.")


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
