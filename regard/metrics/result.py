"""Result of a metric, and the check of the inputs of every metric."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Protocol

from regard.core.config import to_dict
from regard.core.errors import DataError

Texts = Sequence[str]
"""One hypothesis per sentence."""

References = Sequence[Sequence[str]]
"""For each hypothesis its references; their number may differ."""


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


def check_references(
    hypotheses: Sequence[object], references: References, others: Mapping[str, Sized] | None = None
) -> None:
    """Raise a `DataError` unless there are hypotheses and each has a list of references.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references.
        others: Further sequences by name, which must be as long.
    """
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
    for name, other in (others or {}).items():
        check_equal_length({name: other, "hypotheses": hypotheses})
