"""Result of a metric, and the check of the inputs of every metric."""

from collections.abc import Sequence
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


class Metric(Protocol):
    """Hypotheses and, for each of them, its references → Result."""

    def __call__(
        self, hypotheses: Texts, references: References, *, num_bootstrap: int = 0
    ) -> Result:
        """Measure; with resamples there is a 95 % confidence interval, named in the signature."""
        ...


def check_references(hypotheses: Sequence[object], references: References) -> None:
    """Raise a `DataError` unless there are hypotheses and each has a list of references."""
    if not hypotheses:
        raise DataError("`hypotheses` must hold at least one sentence, but is empty.")
    if len(hypotheses) != len(references):
        raise DataError(
            "`hypotheses` and `references` must have equal length, "
            f"but there are {len(hypotheses):,} and {len(references):,}."
        )
    for position, sentences in enumerate(references):
        if isinstance(sentences, str):
            raise DataError(
                f"`references[{position}]` must be a list of sentences, but is the sentence "
                f"{sentences!r}. Put it into a list, even if it is the only one."
            )
        if not sentences:
            raise DataError(f"`references[{position}]` must hold at least one sentence.")
