"""Training log: running averages and a JSON-lines file of events."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import torch
from torch import Tensor

from regard.core.device import sum_dtype
from regard.core.files import append_json_line, read_json_lines, write_text
from regard.core.progress import without_progress
from regard.core.records import check_record
from regard.training.loggers.logger import Logger
from regard.training.plan import Plan, Row
from regard.training.progress import Progress
from regard.training.settings import TrainConfig

MIN_REPEATED = 10
"""Skipped steps, in a row or as most of those between two rows of the training log, from which
training returns to the last checkpoint."""
MAX_RETURNS = 3
"""Returns to a checkpoint after which training fails."""


@dataclass(frozen=True)
class Skipped:
    """Steps skipped since the last row of the training log."""

    num: int = 0
    """Number of skipped steps."""
    num_steps: int = 0
    """Number of all steps."""
    in_a_row: int = 0
    """Number of steps skipped since the last one that was not; also those before the last row."""
    loss: float = 0.0
    """Sum of losses with those of skipped steps."""
    gradient_norm: float = 0.0
    """Sum of gradient norms with those of skipped steps."""

    @property
    def is_repeated(self) -> bool:
        """Whether so many were skipped that training does not get on."""
        is_most = self.num >= MIN_REPEATED and 2 * self.num > self.num_steps
        return is_most or self.in_a_row >= MIN_REPEATED

    def describe(self, step: int) -> str:
        """Describe the skipped steps up to `step` in one sentence, without its full stop."""
        name, value = "loss", self.loss
        if math.isfinite(value):
            name, value = "gradient norm", self.gradient_norm
        kind = "NaN" if math.isnan(value) else "infinite"
        return (
            f"The {name} became {kind} between steps {step - self.num_steps + 1:,} and {step:,}: "
            f"{self.num:,} of {self.num_steps:,} updates were skipped"
        )


def describe_remedies(config: TrainConfig, run: Path) -> str:
    """Return what to do about updates that are not finite, and which files are unchanged."""
    return (
        f"Lower `train.optimizer.learning_rate` (now {config.optimizer.learning_rate:g}), give the "
        f"schedule a longer warm-up or set `train.clip_norm` (now {config.clip_norm:g}). "
        f"Files saved earlier in {run} are unchanged."
    )


class LogRow(TypedDict):
    """Row of a training log, as far as it is read again."""

    kind: str
    step: int
    seconds: float
    metric: NotRequired[str]
    loss: NotRequired[float]
    nll: NotRequired[float]
    value: NotRequired[float]
    learning_rate: NotRequired[float]
    tokens_per_second: NotRequired[float]
    reason: NotRequired[str]


def read_log(path: Path) -> list[Row]:
    """Read a training log; empty if there is none. Raise `CheckpointError` if it is damaged."""
    rows = read_json_lines(path)
    check_record(rows, list[LogRow], str(path))
    return rows


class Meter:
    """Sums of losses and counts since the last log row.

    The sums stay on the device, so only `read` synchronises with it.
    """

    def __init__(self, device: torch.device) -> None:
        self._sums = torch.zeros(4, dtype=sum_dtype(device), device=device)
        self._with_skipped = torch.zeros_like(self._sums)  # the sums with those of skipped steps
        self._num_skipped = torch.zeros((), dtype=torch.long, device=device)
        self._in_a_row = torch.zeros_like(self._num_skipped)
        self.reset()

    def reset(self) -> None:
        """Set all sums to zero."""
        for sums in (self._sums, self._with_skipped, self._num_skipped):
            sums.zero_()
        self.num_steps = 0
        self._num_tokens = 0
        self._waited = 0.0
        self._started = time.perf_counter()

    def add(self, sums: Tensor, norm: Tensor, *, num_tokens: int) -> Tensor:
        """Add a step; return whether it must be skipped, (), as a number is not finite.

        Args:
            sums: Loss, negative log-likelihood and token count of the step.
            norm: Gradient norm of the step.
            num_tokens: Target tokens of the step.
        """
        row = torch.cat([sums, norm.view(1)])
        total = row.sum()
        is_skipped = total - total != 0  # NaN, if the total is NaN or infinite
        self._sums += row.masked_fill(is_skipped, 0)
        self._with_skipped += row
        self._num_skipped += is_skipped
        self._in_a_row = (self._in_a_row + 1) * is_skipped
        self.num_steps += 1
        self._num_tokens += num_tokens
        return is_skipped

    def read(self) -> dict[str, float]:
        """Return means per token and per step, the throughput and the share of time waiting.

        Means are those of the steps that were not skipped.
        """
        loss, nll, count, norm = self._sums.tolist()
        num_used = self.num_steps - self._num_skipped.item()
        return {
            "loss": loss / max(count, 1),
            "nll": nll / max(count, 1),
            "gradient_norm": norm / max(num_used, 1),
            "tokens_per_second": self._num_tokens / max(self._seconds(), 1e-9),
            "waiting": self._waited / max(self._seconds(), 1e-9),
        }

    def skipped(self) -> Skipped:
        """Return the number of skipped steps, and what was not finite."""
        num, in_a_row = torch.stack([self._num_skipped, self._in_a_row]).tolist()
        loss, _, _, norm = self._with_skipped.tolist()
        return Skipped(num, self.num_steps, in_a_row, loss=loss, gradient_norm=norm)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block as spent waiting for data."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._waited += time.perf_counter() - started

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of the block from the throughput."""
        seconds = self._seconds()
        try:
            yield
        finally:
            self._started = time.perf_counter() - seconds

    def state(self) -> dict[str, Any]:
        """Return the state as plain JSON."""
        return {
            "sums": self._sums.tolist(),
            # JSON has neither NaN nor infinity.
            "with_skipped": [str(value) for value in self._with_skipped.tolist()],
            "num_skipped": self._num_skipped.item(),
            "in_a_row": self._in_a_row.item(),
            "num_steps": self.num_steps,
            "num_tokens": self._num_tokens,
            "seconds": self._seconds(),
            "waited": self._waited,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `state`."""
        self._sums.copy_(torch.tensor(state["sums"], dtype=self._sums.dtype))
        # Missing in states of older versions.
        with_skipped = [float(value) for value in state.get("with_skipped", state["sums"])]
        self._with_skipped.copy_(torch.tensor(with_skipped, dtype=self._sums.dtype))
        self._num_skipped.fill_(state.get("num_skipped", 0))
        self._in_a_row.fill_(state.get("in_a_row", 0))
        self.num_steps = state["num_steps"]
        self._num_tokens = state["num_tokens"]
        self._waited = state.get("waited", 0.0)  # missing in states of older versions
        self._started = time.perf_counter() - state["seconds"]

    def _seconds(self) -> float:
        return time.perf_counter() - self._started


class TrainingLog:
    """Training log: a JSON-lines file of events, also sent to loggers."""

    def __init__(self, path: Path, loggers: Sequence[Logger]) -> None:
        self._path = path
        self._loggers = loggers

    @contextmanager
    def opened(self, plan: Plan) -> Iterator[None]:
        """Start the loggers, and close them all at the end of the block."""
        best = [row for row in read_log(self._path) if row.get("is_best")]
        plan = replace(plan, best=best[-1] if best else None)
        # Displays show validations themselves.
        with ExitStack() as stack, without_progress():
            for logger in self._loggers:
                logger.start(plan)
                stack.callback(logger.close)
            yield

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Record a validation during the block."""
        with ExitStack() as stack:
            for logger in self._loggers:
                stack.enter_context(logger.validating())
            yield

    def advance(self, step: int) -> None:
        """Record a step."""
        for logger in self._loggers:
            logger.advance(step)

    def record(
        self, kind: str, values: dict[str, Any], *, progress: Progress, seconds: float
    ) -> None:
        """Write an event with the position of the run.

        Args:
            kind: Kind of the event, such as "valid".
            values: Values of the event.
            progress: Counters of the run.
            seconds: Training time so far.
        """
        position = {
            "kind": kind,
            "step": progress.step,
            "epoch": progress.epoch + (progress.position > 0),  # counted from 1
            "seconds": round(seconds, 3),
        }
        self.write({**position, **values})

    def write(self, row: Row) -> None:
        """Append an event and send it to the loggers."""
        append_json_line(self._path, row)
        for logger in self._loggers:
            logger.write(row)

    def truncate(self, after: int) -> None:
        """Drop the events of later steps, which a resumed run repeats."""
        rows = [row for row in read_log(self._path) if row["step"] <= after]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        write_text(self._path, "".join(lines))
        for logger in self._loggers:
            logger.truncate(after)


class NoTrainingLog(TrainingLog):
    """Training log of a process that writes none, as the first of several processes does."""

    def __init__(self) -> None:
        super().__init__(Path(), ())

    @contextmanager
    def opened(self, plan: Plan) -> Iterator[None]:
        """Do nothing."""
        yield

    def write(self, row: Row) -> None:
        """Do nothing."""

    def truncate(self, after: int) -> None:
        """Do nothing."""


def open_log(run: Path, loggers: Sequence[Logger], *, is_written: bool) -> TrainingLog:
    """Return the training log of a run folder; one without effect if it is not to be written."""
    return TrainingLog(run / "journal.jsonl", loggers) if is_written else NoTrainingLog()
