"""`Evaluation`: the results of a task on a test set."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import DataError
from regard.data.example import Example
from regard.metrics.result import Group, Result
from regard.metrics.text.error_rates import Edit

MAX_EDITS = 50
"""Kinds of errors that are written down."""


@dataclass(frozen=True)
class Evaluation:
    """What was measured on a test set."""

    results: dict[str, Result]
    """Each score by its name."""
    by_length: list[Group] = field(default_factory=list)
    """The first score by the length of the source, in words or, where it is a word, characters."""
    by_tag: list[Group] = field(default_factory=list)
    """The first score and exact matches by phenomenon, where the data carries tags."""
    by_unit: list[Group] = field(default_factory=list)
    """For exact answers: how often each phone, letter or word of the right ones is missed."""
    edits: list[Edit] = field(default_factory=list)
    """For exact answers: what was written in place of what, the most frequent first."""
    sources: list[str] = field(default_factory=list)
    """What was given."""
    outputs: list[str] = field(default_factory=list)
    """What was answered."""
    references: list[str] = field(default_factory=list)
    """What was right."""
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    """For labels: right label → predicted label → how often."""
    num_tokens: int = 0
    """Target tokens written."""
    seconds: float = 0.0
    """Time that answering took."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, without the sentences."""
        return {
            "scores": {name: result.to_dict() for name, result in self.results.items()},
            "by_length": [_group(group) for group in self.by_length],
            "by_tag": [_group(group) for group in self.by_tag],
            **({"by_unit": [_group(group) for group in self.by_unit]} if self.by_unit else {}),
            **({"edits": [vars(edit) for edit in self.edits[:MAX_EDITS]]} if self.edits else {}),
            **({"confusion": self.confusion} if self.confusion else {}),
            "num_examples": len(self.outputs),
            "seconds": round(self.seconds, 3),
            "tokens_per_second": round(self.num_tokens / self.seconds, 1) if self.seconds else 0.0,
        }


def evaluate_tokens(
    found: Iterable[tuple[Tensor, Iterable[tuple[str, str, str]]]],
    measure: Callable[[Tensor], dict[str, Result]],
) -> Evaluation:
    """Measure the predicted tokens of texts.

    Args:
        found: For each batch the sums of each text, (B, C): right tokens, loss, number of tokens
            and others; and each text as given, with the predicted tokens, and with the true ones.
        measure: Computes the results from the sums of all texts, (B, C), in double precision.
    """
    started = time.perf_counter()
    parts: list[Tensor] = []
    samples: list[tuple[str, str, str]] = []
    for sums, texts in found:
        parts.append(sums)
        samples += texts
    whole = torch.cat(parts).double()
    sources, outputs, references = map(list, zip(*samples, strict=True))
    return Evaluation(
        results=measure(whole),
        sources=sources,
        outputs=outputs,
        references=references,
        num_tokens=int(whole[:, 2].sum()),
        seconds=time.perf_counter() - started,
    )


def check_examples(examples: Sequence[Example]) -> None:
    """Raise a `DataError` if there is nothing to evaluate."""
    if not examples:
        raise DataError("There is nothing to evaluate: the test set has no example.")


def check_texts(examples: Sequence[Example]) -> None:
    """Raise a `DataError` if all texts are empty."""
    if not any(example.source.strip() for example in examples):
        raise DataError("There is nothing to evaluate: the test set has no text.")


def _group(group: Group) -> dict[str, Any]:
    values = {name: round(result.value, 4) for name, result in group.results.items()}
    return {"name": group.name, "count": group.count, **values}
