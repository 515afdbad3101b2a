"""Transcription of long recordings, segment by segment, in constant memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from regard.core.config import at_least
from regard.core.errors import ConfigError, DataError
from regard.data.audio.field import AudioField
from regard.data.audio.files import AUDIO_FILES
from regard.data.audio.segment import OVERLAP, Chunk, split_at_pauses
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

BATCH_SIZE = 8
"""Number of segments that are transcribed at once."""


@dataclass(frozen=True)
class Segment:
    """A segment of a recording and its prediction."""

    chunk: Chunk
    prediction: Prediction


def transcribe(
    task: Task[Any], path: str, *, seconds: float, search: SearchConfig | None = None
) -> Iterator[Segment]:
    """Transcribe a recording of any length in segments, lazily.

    Args:
        task: A model that transcribes audio.
        path: An audio file.
        seconds: Maximum length of a segment; best the length of the training recordings.
        search: Search settings; the recipe's if not given.
    """
    generator = check_chunks(task, seconds)
    chunks = split_at_pauses(path, seconds=seconds)
    while batch := list(islice(chunks, BATCH_SIZE)):
        predictions = generator.predict([chunk.reference for chunk in batch], search=search)
        for chunk, hypotheses in zip(batch, predictions, strict=True):
            yield Segment(chunk, hypotheses[0])


def transcribe_all(
    task: Task[Any], paths: Sequence[str], *, seconds: float, search: SearchConfig | None = None
) -> Iterator[list[Segment]]:
    """Transcribe several recordings in order; unreadable ones yield an empty list.

    Their number is logged at the end. Raise `DataError` if no recording can be read.

    Args:
        task: A model that transcribes audio.
        paths: Audio files.
        seconds: Maximum length of a segment.
        search: Search settings; the recipe's if not given.
    """
    reasons: list[str] = []
    num_transcribed = 0
    for path in paths:
        try:
            segments = list(transcribe(task, path, seconds=seconds, search=search))
        except DataError as error:
            if len(paths) == 1:
                raise
            reasons.append(str(error))
            if num_transcribed:
                yield []
            continue
        if not num_transcribed:  # Earlier failures are held back: if all fail, it is an error.
            yield from ([] for _ in reasons)
        num_transcribed += 1
        yield segments
    AUDIO_FILES.report_skipped(reasons, num_kept=num_transcribed, num_given=len(paths))


def join_segments(segments: Iterable[Segment]) -> str:
    """Join the texts of segments in order; words repeated in an overlap are kept once."""
    words: list[str] = []
    for segment in segments:
        new = segment.prediction.text.split()
        num_repeated = _count_repeated(words, new) if segment.chunk.has_overlap else 0
        words += new[num_repeated:]
    return " ".join(words)


def check_chunks(task: Task[Any], seconds: float) -> Predictor:
    """Return a task that can transcribe in segments; raise a `ConfigError` for any other."""
    field = task.source if isinstance(task, Predictor) else None
    if not isinstance(task, Predictor) or not isinstance(field, AudioField):
        raise ConfigError(
            "`--chunk` is for models that transcribe audio, but this run is for the task "
            f"'{task.recipe.task}' and its sources are '{_source_kind(task)}'. Leave it out."
        )
    at_least("chunk", seconds, 4 * OVERLAP)
    if seconds > field.config.max_seconds:
        raise ConfigError(
            f"`--chunk` must be at most `data.source.max_seconds` ({field.config.max_seconds:g}), "
            f"but is {seconds:g}."
        )
    return task


def _source_kind(task: Task[Any]) -> str:
    return str(getattr(getattr(task.recipe.data, "source", None), "kind", "text"))


def _count_repeated(before: list[str], after: list[str]) -> int:
    """Return the length of the longest suffix of one list that is a prefix of the other."""
    longest = min(len(before), len(after))
    return next((num for num in range(longest, 0, -1) if before[-num:] == after[:num]), 0)
