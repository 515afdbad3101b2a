"""Batches of encoder inputs, and computation over batches with results in the order of examples."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.core.device import set_own_threads
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
    num_workers: int = 1,
) -> list[Result]:
    """Compute results batch by batch and return them in the order of the examples.

    Several threads compute batches side by side, each on one core: many small operations take
    less time so than if the cores share each of them.

    Args:
        compute: Returns one result per example of a batch.
        batches: Batches that together hold each example once; `rows` are the example indices.
        description: The operation, in the progress display.
        total: Number of examples, if `batches` are not a sequence.
        num_workers: Number of threads, if `batches` are a sequence.
    """
    results: dict[int, Result] = {}
    if isinstance(batches, Sequence):
        total = sum(map(count_rows, batches))
        num_workers = min(num_workers, len(batches))
    if num_workers > 1:
        computed = _compute_in_threads(compute, batches, num_workers)
        for rows, found in track(computed, description, total=total, size=_count_pairs):
            results.update(zip(rows, found, strict=True))
    else:
        for batch in track(batches, description, total=total, size=count_rows):
            results.update(zip(batch.rows, compute(batch), strict=True))
    return [results[row] for row in sorted(results)]


def _compute_in_threads(
    compute: Callable[[Any], Iterable[Result]], batches: Iterable[Any], num_workers: int
) -> Iterator[tuple[Sequence[int], Iterable[Result]]]:
    """Yield the rows and results of batches in the order of completion; large batches first."""

    def work(batch: Any) -> tuple[Sequence[int], Iterable[Result]]:
        return batch.rows, compute(batch)

    # The number of threads of an operation is a setting of each thread.
    pool = ThreadPoolExecutor(num_workers, initializer=set_own_threads, initargs=(1,))
    try:
        largest_first = sorted(batches, key=count_rows, reverse=True)
        # Searches may be watched by a function of the context.
        futures = [pool.submit(copy_context().run, work, batch) for batch in largest_first]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)
        # Threads that start later begin with the number that was set last, by any thread.
        torch.set_num_threads(torch.get_num_threads())


def _count_pairs(computed: tuple[Sequence[int], Any]) -> int:
    return len(computed[0])


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
