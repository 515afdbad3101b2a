"""Batches of encoder inputs, and computation over batches with results in the order of examples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor

from regard.core.progress import track
from regard.data.batch import Values
from regard.data.example import require_list
from regard.tasks.prediction import Prediction

Result = TypeVar("Result")


@dataclass(frozen=True)
class EncoderBatch:
    """Sources as tensors that an encoder takes."""

    values: Values
    """Inputs of the encoder, on the model's device."""
    mask: Tensor
    """(B, S), True = not padding; on the host."""
    rows: tuple[int, ...]
    """Indices of the sources."""


def map_batches(
    compute: Callable[[Any], Iterable[Result]],
    batches: Iterable[Any],
    *,
    description: str = "Predicting",
    total: int | None = None,
) -> list[Result]:
    """Compute results batch by batch and return them in the order of the examples.

    Args:
        compute: Returns one result per example of a batch.
        batches: Batches that together hold each example once; `rows` are the example indices.
        description: The operation, in the progress display.
        total: Number of examples, if `batches` are not a sequence.
    """
    results: dict[int, Result] = {}
    if isinstance(batches, Sequence):
        total = sum(map(count_rows, batches))
    for batch in track(batches, description, total=total, size=count_rows):
        results.update(zip(batch.rows, compute(batch), strict=True))
    return [results[row] for row in sorted(results)]


def count_rows(batch: Any) -> int:
    """Return the number of examples of a batch."""
    return len(batch.rows)


def predict_nonempty(
    predict: Callable[[list[Any]], Sequence[list[Prediction]]],
    sources: Sequence[Any],
    *,
    is_nonempty: Callable[[Any], object] = str.strip,
) -> list[list[Prediction]]:
    """Predict for the sources that are not empty; an empty source has one empty prediction.

    Args:
        predict: Returns the predictions of sources, in the order given.
        sources: The raw sources.
        is_nonempty: Whether a source is not empty.
    """
    require_list(sources, "sources")
    has_content = [bool(is_nonempty(source)) for source in sources]
    nonempty = [source for source, is_kept in zip(sources, has_content, strict=True) if is_kept]
    predictions = iter(predict(nonempty) if nonempty else ())
    return [next(predictions) if is_kept else [Prediction.empty()] for is_kept in has_content]
