"""Batches of encoder inputs, and computation over batches with results in the order of examples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor

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


def map_batches(compute: Callable[[Any], Iterable[Result]], batches: Iterable[Any]) -> list[Result]:
    """Compute results batch by batch and return them in the order of the examples.

    Args:
        compute: Returns one result per example of a batch.
        batches: Batches that together hold each example once; `rows` are the example indices.
    """
    results: dict[int, Result] = {}
    for batch in batches:
        results.update(zip(batch.rows, compute(batch), strict=True))
    return [results[row] for row in sorted(results)]


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
