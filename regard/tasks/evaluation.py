"""`Evaluation`: the results of a task on a test set."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

import torch
from torch import Tensor

from regard.core.errors import CheckpointError, DataError
from regard.core.progress import track
from regard.core.records import check_record
from regard.data.example import Example, require_examples
from regard.metrics.result import Group, Result
from regard.metrics.text.error_rates import Edit
from regard.tasks.notebook import count, results_html

MAX_EDITS = 50
"""Maximum number of edits in `to_dict`."""


class _Result(TypedDict):
    name: str
    value: float
    signature: str
    interval: NotRequired[tuple[float, float] | None]
    detail: NotRequired[dict[str, float]]


class _Edit(TypedDict):
    right: str
    written: str
    count: int


class _Group(TypedDict):
    """Group; its other values are scores."""

    name: str
    count: int


class EvaluationRecord(TypedDict):
    """Plain values of an evaluation, as `to_dict` returns them."""

    scores: dict[str, _Result]
    by_length: NotRequired[list[_Group]]
    by_tag: NotRequired[list[_Group]]
    by_unit: NotRequired[list[_Group]]
    edits: NotRequired[list[_Edit]]
    confusion: NotRequired[dict[str, dict[str, int]]]
    num_examples: int
    seconds: float


def check_groups(values: dict[str, Any], where: str) -> None:
    """Raise `CheckpointError` unless each group of an `EvaluationRecord` has scores.

    Args:
        values: The record, whose other types are checked.
        where: Name of its file in messages.
    """
    for kind in ("by_length", "by_tag", "by_unit"):
        for number, group in enumerate(values.get(kind, ())):
            name = f"{where}: `{kind}[{number}]`"
            scores = check_record(_scores(group), dict[str, float], name)
            if not scores:
                raise CheckpointError(f"{name} has no score. The file is damaged.")


@dataclass(frozen=True)
class Evaluation:
    """Results on a test set."""

    results: dict[str, Result]
    """The results by metric."""
    by_length: list[Group] = field(default_factory=list)
    """The first metric by source length, in words, or in characters if sources are words."""
    by_tag: list[Group] = field(default_factory=list)
    """The first metric and exact matches by tag, if the data has tags."""
    by_unit: list[Group] = field(default_factory=list)
    """For error rates: error rate of each phone, letter or word of the references."""
    edits: list[Edit] = field(default_factory=list)
    """For error rates: substitutions, insertions and deletions, the most frequent first."""
    sources: list[str] = field(default_factory=list)
    """The sources."""
    outputs: list[str] = field(default_factory=list)
    """The predictions."""
    references: list[str] = field(default_factory=list)
    """The targets."""
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    """For labels: true label → predicted label → count."""
    num_tokens: int = 0
    """Number of predicted tokens."""
    seconds: float = 0.0
    """Duration of the prediction."""

    @property
    def _title(self) -> str:
        examples = f" of {count(len(self.outputs), 'example')}" if self.outputs else ""
        return f"Evaluation{examples}"

    def __repr__(self) -> str:
        return "\n  ".join([self._title, *map(str, self.results.values())])

    def _repr_html_(self) -> str:
        return results_html(self._title, list(self.results.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the texts."""
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

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Evaluation":
        """Return what `to_dict` returned as an evaluation, without the texts."""
        results = {name: Result.from_dict(result) for name, result in values["scores"].items()}

        def read_groups(side: str) -> list[Group]:
            return [_read_group(group, results) for group in values.get(side, ())]

        return cls(
            results=results,
            by_length=read_groups("by_length"),
            by_tag=read_groups("by_tag"),
            by_unit=read_groups("by_unit"),
            edits=[Edit(**edit) for edit in values.get("edits", ())],
            confusion=values.get("confusion", {}),
            seconds=values["seconds"],
        )


def evaluate_tokens(
    batches: Iterable[tuple[Tensor, Iterable[tuple[str, str, str]]]],
    measure: Callable[[Tensor], dict[str, Result]],
) -> Evaluation:
    """Evaluate the predicted tokens of texts.

    Args:
        batches: For each batch the sums of each text, (B, C): correct tokens, loss, number of
            tokens and others; and each text as given, with predicted and with true tokens.
        measure: Computes the results from the sums of all texts, (B, C), in double precision.
    """
    started = time.perf_counter()
    parts: list[Tensor] = []
    samples: list[tuple[str, str, str]] = []
    for sums, texts in track(batches, "Predicting", size=lambda batch: len(batch[0])):
        parts.append(sums)
        samples += texts
    all_sums = torch.cat(parts).cpu().double()
    sources, outputs, references = map(list, zip(*samples, strict=True))
    return Evaluation(
        results=measure(all_sums),
        sources=sources,
        outputs=outputs,
        references=references,
        num_tokens=int(all_sums[:, 2].sum()),
        seconds=time.perf_counter() - started,
    )


def check_examples(examples: Sequence[Example]) -> None:
    """Raise a `DataError` if there are no examples."""
    require_examples(examples)
    if not examples:
        raise DataError("There is nothing to evaluate: the test set has no example.")


def check_texts(examples: Sequence[Example]) -> None:
    """Raise a `DataError` if all texts are empty."""
    require_examples(examples)
    if not any(example.source.strip() for example in examples):
        raise DataError("There is nothing to evaluate: the test set has no text.")


def _group(group: Group) -> dict[str, Any]:
    values = {name: round(result.value, 4) for name, result in group.results.items()}
    return {"name": group.name, "count": group.count, **values}


def _read_group(values: dict[str, Any], results: dict[str, Result]) -> Group:
    """Return a group; its results have the names of the metrics on the whole test set."""
    scores = {
        key: Result(results[key].name if key in results else key, value, "")
        for key, value in _scores(values).items()
    }
    return Group(values["name"], values["count"], scores)


def _scores(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name not in ("name", "count")}
