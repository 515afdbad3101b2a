"""A training that is followed: its rows, its progress and whether it runs."""

import math
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NotRequired, TypedDict

from regard.core.errors import CheckpointError
from regard.core.records import check_record
from regard.runs.folder import SAMPLES, TRAINING_LOG
from regard.runs.lock import is_locked
from regard.runs.saved.config import CONFIG, read_config
from regard.serve.trainings.growing_log import GrowingLog, Row
from regard.training.loggers.display import spell_metric
from regard.training.logs import LogRow

MAX_ROWS, MAX_SAMPLES = 2_000, 60
"""Maximum numbers of rows of a reply."""

MAX_BYTES = 2**20
"""Maximum number of bytes of the rows of a reply, and of its samples."""

NUM_RECENT = 20
"""Number of last rows from which the time that is left is estimated."""

STARTED = time.time_ns()


class _SampleRow(TypedDict):
    """A sample, as far as the page reads it."""

    step: int
    epoch: int
    seconds: float
    example: int
    source: str | None
    reference: str
    prediction: str
    probability: NotRequired[float]
    attention: dict[str, Any] | None


@dataclass(frozen=True)
class _Limits:
    """Task, recipe and limits of a run."""

    task: str | None = None
    recipe: str | None = None
    total_steps: int | None = None
    max_seconds: float = 0.0
    metric: str | None = None


class Training:
    """A run that is trained now, later or before.

    Its methods read files; several threads may call them.

    Args:
        name: Name of the run.
        folder: The run folder.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self._lock = Lock()
        self._limits, self._config_version = _Limits(), (0, 0)
        self._log = GrowingLog(folder / TRAINING_LOG, accept=self._accept, reset=self._reset)
        self._samples = GrowingLog(folder / SAMPLES, accept=_check_sample, reset=lambda: None)
        self._reset()

    def _reset(self) -> None:
        self._last: Row = {}
        self._best: Row | None = None
        self._metric: str | None = None
        self._stopped: str | None = None
        self._recent: deque[tuple[int, float]] = deque(maxlen=NUM_RECENT)

    def _accept(self, row: Row) -> None:
        check_record(row, LogRow, "The row")
        self._last = row
        self._stopped = row.get("reason") if row["kind"] == "stop" else None
        if row["kind"] in ("valid", "average"):
            self._metric = row.get("metric", "value")  # older versions do not name it
            if row.get("is_best"):
                self._best = row
        if self._recent and self._recent[-1][0] > row["step"]:
            self._recent.clear()
        self._recent.append((row["step"], row["seconds"]))

    def describe(self) -> dict[str, Any]:
        """Return the progress."""
        with self._lock:
            self._log.update()
            return self._describe()

    def read(
        self, *, after: int = 0, samples_after: int = 0, version: str | None = None
    ) -> dict[str, Any]:
        """Return the progress, and rows that a client does not have yet.

        Args:
            after: Index of the first row.
            samples_after: Index of the first sample.
            version: That of the reply before; if it is another one now, rows start from the first.
        """
        with self._lock:
            self._log.update()
            self._samples.update()
            now = self._version
            is_restarted = version not in (None, now)
            is_restarted |= after > len(self._log) or samples_after > len(self._samples)
            if is_restarted:
                after = samples_after = 0
            rows = self._log.read(after, max_rows=MAX_ROWS, max_bytes=MAX_BYTES)
            samples = self._samples.read(samples_after, max_rows=MAX_SAMPLES, max_bytes=MAX_BYTES)
            if self._version != now:  # replaced in this moment: the next request starts again
                rows = samples = []
            return {
                **self._describe(),
                "rows": rows,
                "next": after + len(rows),
                "samples": samples,
                "next_samples": samples_after + len(samples),
                "has_more": (
                    after + len(rows) < len(self._log)
                    or samples_after + len(samples) < len(self._samples)
                    or not (self._log.is_complete and self._samples.is_complete)
                ),
                "version": now,
                "is_restarted": is_restarted,
            }

    @property
    def _version(self) -> str:
        """Version of the files, which changes when one of them is replaced."""
        return f"{STARTED:x}-{self._log.generation}-{self._samples.generation}"

    def _describe(self) -> dict[str, Any]:
        limits, last = self._read_limits(), self._last
        is_running = is_locked(self.folder)
        metric = self._metric or limits.metric
        modified = self._log.modified
        return {
            "name": self.name,
            "task": limits.task,
            "recipe": limits.recipe,
            "is_running": is_running,
            "stopped": self._stopped,
            "step": last.get("step", 0),
            "total_steps": limits.total_steps,
            "metric": metric,
            "metric_label": None if metric is None else spell_metric(metric),
            "best": None if self._best is None else _describe_best(self._best),
            "seconds": last.get("seconds", 0.0),
            "seconds_left": self._seconds_left() if is_running else None,
            "updated": None if modified is None else max(time.time() - modified, 0.0),
        }

    def _seconds_left(self) -> float | None:
        """Return the time until the nearest limit; None if it is unknown."""
        limits, left = self._limits, []
        if self._stopped is not None or not self._recent:
            return None
        (first_step, first_seconds), (step, seconds) = self._recent[0], self._recent[-1]
        if limits.max_seconds:
            left.append(max(limits.max_seconds - seconds, 0.0))
        if limits.total_steps and step > first_step:
            per_step = max(seconds - first_seconds, 0.0) / (step - first_step)
            left.append(max(limits.total_steps - step, 0) * per_step)
        return min(left, default=None)

    def _read_limits(self) -> _Limits:
        """Return what the settings of the run say, read again if they have changed."""
        try:
            status = (self.folder / CONFIG).stat()
            version = (status.st_ino, status.st_mtime_ns)
            if version != self._config_version:
                self._limits = _find_limits(read_config(self.folder))
                self._config_version = version
        except (CheckpointError, OSError):
            self._limits, self._config_version = _Limits(), (0, 0)
        return self._limits


def _describe_best(row: Row) -> dict[str, Any]:
    """Return the step and the score of the best validation, as it is spelled for people."""
    metric = row.get("metric", "value")
    value = row.get(metric, row.get("value"))
    return {"step": row["step"], "value": value if isinstance(value, int | float) else None}


def _check_sample(row: Row) -> None:
    check_record(row, _SampleRow, "The sample")


class _Train(TypedDict, total=False):
    """Settings of a training, as far as they limit it."""

    max_steps: int
    max_epochs: int
    max_minutes: float
    accumulate: int


def _find_limits(config: dict[str, Any]) -> _Limits:
    """Return the limits of a training from its settings, which anyone may have written."""
    recipe, about = config["recipe"], config["about"]
    task, metric = recipe.get("task"), _get(recipe, "validation", "metric")
    train = recipe.get("train", {})
    try:
        check_record(train, _Train, CONFIG)
    except CheckpointError:
        train = {}
    name = about.get("recipe")
    return _Limits(
        task=task if isinstance(task, str) else None,
        recipe=name if isinstance(name, str) else None,
        total_steps=_find_total(train, about.get("batches_per_epoch", 0)),
        max_seconds=60 * train.get("max_minutes", 0.0),
        metric=metric if isinstance(metric, str) else None,
    )


def _find_total(train: dict[str, Any], batches_per_epoch: int) -> int | None:
    """Return the maximum number of steps; None if it is unlimited or unknown."""
    steps, epochs = train.get("max_steps", 0), train.get("max_epochs", 0)
    per_epoch = math.ceil(batches_per_epoch / max(train.get("accumulate", 1), 1))
    if epochs > 0 and not per_epoch:
        return steps if steps > 0 else None  # of an older version: perhaps less
    return min((limit for limit in (steps, epochs * per_epoch) if limit > 0), default=None)


def _get(values: Any, *names: str) -> Any:
    for name in names:
        values = values.get(name) if isinstance(values, dict) else None
    return values
