"""Samples of a training: predictions of fixed validation examples, with their attention weights."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from regard.core.files import append_json_line, read_json_lines, write_text
from regard.core.logging import logger, muted
from regard.core.records import check_record
from regard.data.example import Example
from regard.data.text.field import as_text
from regard.runs.folder import SAMPLES
from regard.tasks.base import Attends, Generates, GeneratesImages, Task
from regard.tasks.decoding.preparation import without_packing
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.reading import find_modality
from regard.training.loggers.logger import Logger
from regard.training.plan import Row

NUM_SAMPLES = 3
"""Maximum number of examples."""

NUM_INSPECTED = 1_000
"""Number of validation examples among which they are chosen."""

MODERATE = (20, 160)
"""Numbers of characters of texts of moderate length."""

MAX_CHARACTERS = 1_000
"""Maximum number of characters of a text of a sample; longer ones are truncated."""

MAX_WEIGHTS = 6_000
"""Maximum number of attention weights of a sample; larger maps are left out."""

MAX_BYTES = 16 * 2**20
"""Size of the file from which every second validation is removed from it."""

DIGITS = 4
"""Decimals of attention weights."""


class _SampleRow(TypedDict):
    """A row of the file, as far as it is read again."""

    step: int


@dataclass(frozen=True)
class Sample:
    """A validation example as the model gets it."""

    source: Any
    """The input of the model."""
    text: str | None
    """The text of the input; None if it is an image, a recording or a video."""
    reference: str


class SampleLog(Logger):
    """Log of samples: at every validation, one row per example in a file of the run folder.

    The samples are computed while the trainer validates: with the weights that it validates, in
    evaluation mode, and with random states that it restores. An error is one warning.

    Args:
        folder: The run folder.
        task: The task in training.
        examples: The validation set.
    """

    def __init__(self, folder: Path, task: Task[Any], examples: Sequence[Example]) -> None:
        self._path = folder / SAMPLES
        self._task = task
        self._examples = examples
        self._samples: list[Sample] | None = None
        self._found: list[Row] = []
        self._has_warned = False
        self._max_bytes = MAX_BYTES

    def truncate(self, after: int) -> None:
        """Drop the samples of later steps, which are repeated."""
        if self._path.exists():
            self._write([row for row in read_samples(self._path) if row["step"] <= after])

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Compute the samples after a validation."""
        yield
        self._found = self._try_compute()

    def write(self, row: Row) -> None:
        """Append the samples of a validation."""
        found, self._found = self._found, []
        if row["kind"] != "valid":
            return
        position = {name: row[name] for name in ("step", "epoch", "seconds")}
        for one in found:
            append_json_line(self._path, {**position, **one})
        if found and self._path.stat().st_size > self._max_bytes:
            self._write(thin(read_samples(self._path)))

    def _try_compute(self) -> list[Row]:
        try:
            if self._samples is None:
                self._samples = choose_samples(self._task, self._examples)
            # Warnings about sources would be repeated at each validation.
            with muted(), without_packing():
                return compute_samples(self._task, self._samples)
        except Exception as error:
            if not self._has_warned:
                name = type(error).__name__
                logger.warning("Samples of the training cannot be computed (%s: %s).", name, error)
                logger.debug("Traceback of the samples:", exc_info=True)
            self._has_warned = True
            return []

    def _write(self, rows: Sequence[Row]) -> None:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        write_text(self._path, "".join(lines))


def read_samples(path: Path) -> list[Row]:
    """Read a file of samples; empty if there is none. Raise `CheckpointError` if it is damaged."""
    rows = read_json_lines(path)
    check_record(rows, list[_SampleRow], str(path))
    return rows


def thin(rows: Sequence[Row]) -> list[Row]:
    """Return the samples of every second validation, the last one included."""
    steps = list(dict.fromkeys(row["step"] for row in rows))
    kept = {*steps[::-2]}
    return [row for row in rows if row["step"] in kept]


def choose_samples(task: Task[Any], examples: Sequence[Example]) -> list[Sample]:
    """Return the first examples of moderate length; if there are too few, also the first others.

    Tasks whose predictions are images have none.
    """
    if isinstance(task, GeneratesImages):
        return []
    has_text = find_modality(task.recipe.data).name.startswith("text")
    few = list(examples[:NUM_INSPECTED])
    order = sorted(range(len(few)), key=lambda index: not _is_moderate(few[index], has_text))
    chosen = [few[index] for index in sorted(order[:NUM_SAMPLES])]
    return [_to_sample(task, example, has_text=has_text) for example in chosen]


def _is_moderate(example: Example, has_text: bool) -> bool:
    texts = [as_text(example.source) if has_text else "", example.target]
    low, high = MODERATE
    return all(low <= len(text) <= high for text in filter(None, texts))


def _to_sample(task: Task[Any], example: Example, *, has_text: bool) -> Sample:
    """Return an example as the model gets it: without the part that it predicts."""
    source, reference = example.source, example.target
    if change := _INPUTS.get(task.recipe.task):
        source, reference = change(as_text(source)), as_text(source)
    text = None
    if has_text:  # of a text beside an image, the text alone
        is_mixed = find_modality(task.recipe.data).name != "text"
        text = as_text(source[:-1] if is_mixed and isinstance(source, tuple) else source)
    return Sample(source, text, reference)


def _first_half(text: str) -> str:
    words = text.split()
    return " ".join(words[: (len(words) + 1) // 2])


def _mask_middle(text: str) -> str:
    words = text.split()
    if words:
        words[len(words) // 2] = "<mask>"
    return " ".join(words)


_INPUTS: dict[str, Callable[[str], str]] = {
    "language_model": _first_half,
    "denoising": _mask_middle,
    "masked_language_model": _mask_middle,
}
"""Inputs for tasks that read texts without targets; the whole text is the reference."""


def compute_samples(task: Task[Any], samples: Sequence[Sample]) -> list[Row]:
    """Return the predictions of examples by greedy search, with their attention weights."""
    if not samples:
        return []
    sources = [sample.source for sample in samples]
    if isinstance(task, Generates):
        found = task.predict(sources, search=task.search.greedy())
    else:
        found = task.predict(sources)
    best = [predictions[0] for predictions in found]
    return [
        {
            "example": number,
            "source": None if sample.text is None else _shorten(sample.text),
            "reference": _shorten(sample.reference),
            "prediction": _shorten(prediction.text),
            **({"probability": math.exp(prediction.log_prob)} if task.label_names else {}),
            "attention": _attend(task, sample, prediction),
        }
        for number, (sample, prediction) in enumerate(zip(samples, best, strict=True))
    ]


def _attend(task: Task[Any], sample: Sample, prediction: Prediction) -> dict[str, Any] | None:
    """Return the mean attention weights of a prediction; None if there are none or too many."""
    is_short = len(prediction.text) <= MAX_CHARACTERS
    if not isinstance(task, Attends) or not is_short:
        return None
    source = prediction.text if task.recipe.task == "language_model" else sample.source
    (found,) = task.attend([Example(source, prediction.text)])
    num_rows, num_columns = found.weights.shape[2:]
    is_shown = found.weights.numel() and num_rows * num_columns <= MAX_WEIGHTS
    return to_plain(found) if is_shown else None


def to_plain(found: AttentionMap) -> dict[str, Any]:
    """Return the mean over layers and heads as plain values."""
    rows, columns = found.labels
    scale = 10.0**DIGITS
    return {
        "source": columns,
        "target": rows,
        "kind": found.kind,
        "grid": None if found.grid is None else list(found.grid),
        "weights": found.mean().double().mul(scale).round().div(scale).tolist(),
    }


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
