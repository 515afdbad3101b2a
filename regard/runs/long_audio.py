"""Long recordings → text, part by part, in memory that does not grow with their length."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from regard.core.config import at_least
from regard.core.errors import ConfigError, DataError
from regard.data.audio.field import AudioField
from regard.data.audio.files import AUDIO_FILES
from regard.data.audio.segment import OVERLAP, Chunk, cut_at_pauses
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

NUM_TOGETHER = 8
"""Parts that are heard at once."""


@dataclass(frozen=True)
class Segment:
    """A part of a recording and what a model predicts for it."""

    chunk: Chunk
    prediction: Prediction


def transcribe(
    task: Task[Any], path: str, *, seconds: float, search: SearchConfig | None = None
) -> Iterator[Segment]:
    """Hear a recording of any length in parts, each as soon as it is asked for.

    Args:
        task: A model that writes what it hears.
        path: A recording in a file.
        seconds: How long a part is at most; best as long as what the model learned from.
        search: How to search; the recipe's way if not given.
    """
    generator = check_chunks(task, seconds)
    chunks = cut_at_pauses(path, seconds=seconds)
    while together := list(islice(chunks, NUM_TOGETHER)):
        found = generator.predict([chunk.reference for chunk in together], search=search)
        for chunk, predictions in zip(together, found, strict=True):
            yield Segment(chunk, predictions[0])


def transcribe_all(
    task: Task[Any], paths: Sequence[str], *, seconds: float, search: SearchConfig | None = None
) -> Iterator[list[Segment]]:
    """Hear recordings one after the other; one among others that cannot be read has no parts.

    How many these are is said at the end. Where nothing else is asked, it is an error.

    Args:
        task: A model that writes what it hears.
        paths: Recordings in files.
        seconds: How long a part is at most.
        search: How to search; the recipe's way if not given.
    """
    reasons: list[str] = []
    num_heard = 0
    for path in paths:
        try:
            parts = list(transcribe(task, path, seconds=seconds, search=search))
        except DataError as error:
            if len(paths) == 1:
                raise
            reasons.append(str(error))
            if num_heard:
                yield []
            continue
        if not num_heard:  # Until then, all could have been in vain.
            yield from ([] for _ in reasons)
        num_heard += 1
        yield parts
    AUDIO_FILES.report_skipped(reasons, num_kept=num_heard, num_given=len(paths))


def join(parts: Iterable[Segment]) -> str:
    """Return the text of parts in order; what two of them heard in their overlap comes once."""
    words: list[str] = []
    for part in parts:
        new = part.prediction.text.split()
        num = _num_doubled(words, new) if part.chunk.has_overlap else 0
        words += new[num:]
    return " ".join(words)


def check_chunks(task: Task[Any], seconds: float) -> Predictor:
    """Return a task that transcribes recordings in parts; raise a `ConfigError` for any other."""
    field = task.source if isinstance(task, Predictor) else None
    if not isinstance(task, Predictor) or not isinstance(field, AudioField):
        raise ConfigError(
            "`--chunk` is for models that write what they hear, but this run is for the task "
            f"'{task.recipe.task}' and reads '{_kind(task)}'. Leave it out."
        )
    at_least("chunk", seconds, 4 * OVERLAP)
    if seconds > field.config.max_seconds:
        raise ConfigError(
            f"`--chunk` must be at most `data.source.max_seconds` ({field.config.max_seconds:g}), "
            f"but is {seconds:g}."
        )
    return task


def _kind(task: Task[Any]) -> str:
    return str(getattr(getattr(task.recipe.data, "source", None), "kind", "text"))


def _num_doubled(before: list[str], after: list[str]) -> int:
    """Return how many words, at the most, end the one list and begin the other."""
    most = min(len(before), len(after))
    return next((num for num in range(most, 0, -1) if before[-num:] == after[:num]), 0)
