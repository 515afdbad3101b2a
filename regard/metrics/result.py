"""`Result` of a metric, and checks of the inputs of metrics."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Protocol

from regard.core.config import to_dict
from regard.core.errors import DataError

Texts = Sequence[str]
"""One hypothesis per sentence."""

References = Sequence[Sequence[str]]
"""One or more references per hypothesis."""


@dataclass(frozen=True)
class Result:
    """Value of a metric with the settings needed to reproduce it."""

    name: str
    """Name of the metric in papers: BLEU, chrF2, WER."""
    value: float
    """Value in the usual unit: percent; 0 to 1 for lecture BLEU, AER and AUC; 0 to 10 for CIDEr."""
    signature: str
    """Settings of the metric as `key:value` pairs joined by `|`."""
    interval: tuple[float, float] | None = None
    """95 % confidence interval, if computed."""
    detail: dict[str, float] = field(default_factory=dict)
    """Further values, such as counts and components."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON; an empty detail is omitted."""
        values = to_dict(self)
        if not self.detail:
            del values["detail"]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Result":
        """Return what `to_dict` returned as a result."""
        interval = values.get("interval")
        return cls(
            values["name"],
            values["value"],
            values["signature"],
            interval=None if interval is None else (interval[0], interval[1]),
            detail=dict(values.get("detail", {})),
        )

    def __str__(self) -> str:
        spread = ""
        if self.interval is not None:
            low, high = self.interval
            spread = f" ± {(high - low) / 2:.2g}"
        # Four significant digits suit both percentages (37.92) and fractions (0.6814).
        return f"{self.name} {self.value:#.4g}{spread}  {self.signature}"


@dataclass(frozen=True)
class Group:
    """Results on one part of a test set."""

    name: str
    """Name of the group: a range of lengths, a tag, a unit."""
    count: int
    """Number of sentences, or of occurrences of a unit."""
    results: dict[str, Result] = field(default_factory=dict)
    """Results by metric name."""
    position: float | None = None
    """Position on the axis of a plot, if any: the mean length, the middle of an interval."""


class Metric(Protocol):
    """Function from hypotheses and references to a `Result`."""

    def __call__(
        self, hypotheses: Texts, references: References, *, num_bootstrap: int = 0
    ) -> Result:
        """Compute the metric, with a 95 % confidence interval if there are resamples."""
        ...


def check_equal_length(sides: Mapping[str, Sized]) -> None:
    """Raise `DataError` unless two named sequences have equal length."""
    first, second = map(len, sides.values())
    if first != second:
        names = " and ".join(f"`{name}`" for name in sides)
        raise DataError(f"{names} must have equal length, but there are {first:,} and {second:,}.")


def check_references(
    hypotheses: Sequence[object], references: References, others: Mapping[str, Sized] | None = None
) -> None:
    """Raise `DataError` unless there are hypotheses and each has a list of references.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references.
        others: Further named sequences, which must have the same length.
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
