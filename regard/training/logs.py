"""Training log: running averages, a JSON-lines file and the progress display."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from regard.core.device import sum_dtype
from regard.core.files import append_json_line, read_json_lines, write_text
from regard.core.logging import is_first_process, logger

NOTEWORTHY_WAITING = 0.05
"""Share of time waiting for data above which the log reports it."""

Row = dict[str, Any]
"""One event: `kind`, `step` and the fields of that kind of event."""


class Meter:
    """Sums of losses and counts since the last log row.

    The sums stay on the device, so only `read` synchronises with it.
    """

    def __init__(self, device: torch.device) -> None:
        self._sums = torch.zeros(4, dtype=sum_dtype(device), device=device)
        self.reset()

    def reset(self) -> None:
        """Set all sums to zero."""
        self._sums.zero_()
        self.num_steps = 0
        self._num_tokens = 0
        self._waited = 0.0
        self._started = time.perf_counter()

    def add(self, sums: Tensor, norm: Tensor, *, num_tokens: int) -> None:
        """Add a step.

        Args:
            sums: Loss, negative log-likelihood and token count of the step.
            norm: Gradient norm of the step.
            num_tokens: Target tokens of the step.
        """
        self._sums += torch.cat([sums, norm.view(1)])
        self.num_steps += 1
        self._num_tokens += num_tokens

    def read(self) -> dict[str, float]:
        """Return means per token and per step, the throughput and the share of time waiting."""
        loss, nll, count, norm = self._sums.tolist()
        return {
            "loss": loss / max(count, 1),
            "nll": nll / max(count, 1),
            "gradient_norm": norm / max(self.num_steps, 1),
            "tokens_per_second": self._num_tokens / max(self._seconds(), 1e-9),
            "waiting": self._waited / max(self._seconds(), 1e-9),
        }

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
            "num_steps": self.num_steps,
            "num_tokens": self._num_tokens,
            "seconds": self._seconds(),
            "waited": self._waited,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `state`."""
        self._sums.copy_(torch.tensor(state["sums"], dtype=self._sums.dtype))
        self.num_steps = state["num_steps"]
        self._num_tokens = state["num_tokens"]
        self._waited = state.get("waited", 0.0)  # missing in states of older versions
        self._started = time.perf_counter() - state["seconds"]

    def _seconds(self) -> float:
        return time.perf_counter() - self._started


class Display:
    """Base class of progress displays; shows nothing."""

    def start(self, step: int, total_steps: int) -> None:
        """Start at a step; `total_steps` is 0 if unknown."""

    def advance(self, step: int) -> None:
        """Record a step. Called at every step, so it must be cheap."""

    def show(self, row: Row) -> None:
        """Show an event."""

    def stop(self) -> None:
        """Finish the display."""


class BarDisplay(Display):
    """Progress bar with the latest training metrics; other events are printed above it."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
        )

    def start(self, step: int, total_steps: int) -> None:
        """Start at a step."""
        total = total_steps or None
        self._task = self._bar.add_task("Training", total=total, completed=step, numbers="")
        self._bar.start()

    def advance(self, step: int) -> None:
        """Advance the bar."""
        self._bar.update(self._task, completed=step)

    def show(self, row: Row) -> None:
        """Show training metrics beside the bar and other events above it."""
        if row["kind"] == "train":
            self._bar.update(self._task, numbers=_describe_numbers(row))
        else:
            self._bar.console.print(describe(row), markup=False, highlight=False)

    def stop(self) -> None:
        """Stop updating the bar."""
        self._bar.stop()


class LineDisplay(Display):
    """One line of text per event, through the package's logger."""

    def __init__(self) -> None:
        self._total_steps = 0
        self._first: tuple[int, float] | None = None

    def start(self, step: int, total_steps: int) -> None:
        """Start at a step."""
        self._total_steps, self._first = total_steps, None

    def show(self, row: Row) -> None:
        """Log a line, with the remaining time if it can be estimated."""
        logger.info("%s%s", describe(row), self._time_left(row) if row["kind"] == "train" else "")

    def _time_left(self, row: Row) -> str:
        step, seconds = row["step"], row.get("seconds", 0.0)
        first_step, first_seconds = self._first or (step, seconds)
        self._first = first_step, first_seconds
        if step == first_step or step > self._total_steps:
            return ""
        remaining = (self._total_steps - step) * (seconds - first_seconds) / (step - first_step)
        return f", {remaining / 60:.0f} min left"


class TrainingLog:
    """Training log: a JSON-lines file of events, also sent to a display."""

    def __init__(self, path: Path, display: Display) -> None:
        self._path = path
        self._display = display

    @contextmanager
    def shown(self, step: int, total_steps: int) -> Iterator[None]:
        """Start the display, and stop it at the end of the block."""
        self._display.start(step, total_steps)
        try:
            yield
        finally:
            self._display.stop()

    def advance(self, step: int) -> None:
        """Record a step."""
        self._display.advance(step)

    def write(self, row: Row) -> None:
        """Append an event and show it."""
        append_json_line(self._path, row)
        self._display.show(row)

    def truncate(self, after: int) -> None:
        """Drop the events of later steps, which a resumed run repeats."""
        rows = [row for row in read_json_lines(self._path) if row["step"] <= after]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        write_text(self._path, "".join(lines))


def choose_display() -> Display:
    """Return a progress bar on a terminal, plain lines otherwise."""
    return BarDisplay() if sys.stdout.isatty() and is_first_process() else LineDisplay()


def describe(row: Row) -> str:
    """Format an event as one line of text."""
    numbers = _describe_numbers(row)
    return f"{row['kind']}: step {row['step']:,}" + (f", {numbers}" if numbers else "")


def _describe_numbers(row: Row) -> str:
    omitted = ["kind", "step", "seconds", "waiting", "is_best"]
    if "loss" in row:
        # `value` repeats one of the metrics, possibly negated.
        omitted.append("value")
    numbers = [
        f"{name.replace('_', ' ')} {_number(value)}"
        for name, value in row.items()
        if name not in omitted
    ]
    if row.get("is_best"):
        numbers.append("best so far")
    if row.get("waiting", 0.0) > NOTEWORTHY_WAITING:
        numbers.append(f"{row['waiting']:.0%} of the time waiting for data")
    return ", ".join(numbers)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
