"""Progress displays of training: a progress bar, or log lines."""

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from regard.core.logging import logger
from regard.core.progress import (
    REFRESH_SECONDS,
    Screen,
    find_screen,
    fit_bar,
    format_rate,
    format_seconds,
    line_interval,
)
from regard.training.loggers.logger import Logger
from regard.training.plan import Plan, Row

NOTEWORTHY_WAITING = 0.05
"""Share of time waiting for data above which log lines report it."""

MEMORY_SECONDS = 60.0
"""Time constant of the average duration of a step."""

SPELLINGS = {
    **{name: name.upper() for name in ("bleu", "rouge", "wer", "cer", "per", "ter", "psnr", "iou")},
    "chrf": "chrF",
    "cider": "CIDEr",
}
"""Words in the names of metrics that are not written in lower case."""


class Clock:
    """Measured time of steps and validations, and an estimate of the remaining time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._started = self._last = time.perf_counter()
        self._is_first = True
        self._step_seconds = self._num_steps = 0.0
        self._validation_seconds = 0.0
        self._num_validations = 0

    @property
    def seconds(self) -> float:
        """Training time, with that before a resume."""
        return self._plan.seconds + time.perf_counter() - self._started

    def add_step(self) -> None:
        """Count a step that ends now. Later steps have more weight; the first is a warm-up."""
        now = time.perf_counter()
        duration, self._last = now - self._last, now
        if self._is_first:
            self._is_first = False
            return
        decay = math.exp(-duration / MEMORY_SECONDS)
        self._step_seconds = decay * self._step_seconds + duration
        self._num_steps = decay * self._num_steps + 1

    @contextmanager
    def validation(self) -> Iterator[None]:
        """Count the time of the block as a validation, not as part of a step."""
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        self._validation_seconds += seconds
        self._num_validations += 1
        self._last += seconds

    def remaining(self, step: int) -> float | None:
        """Return the seconds until the first limit; None if there is none or no measurement yet.

        Steps and the validations between them take as long as those before.
        """
        plan, limits = self._plan, []
        if plan.max_seconds:
            limits.append(max(plan.max_seconds - self.seconds, 0.0))
        if plan.total_steps and self._num_steps:
            num = max(plan.total_steps - step, 0)
            every = plan.validate_every or plan.steps_per_epoch
            # The last step is always validated.
            num_validations = -(-plan.total_steps // every) - step // every
            mean = self._validation_seconds / max(self._num_validations, 1)
            limits.append(num * self._step_seconds / self._num_steps + num_validations * mean)
        return min(limits, default=None)


class TextDisplay(Logger):
    """Base class of displays of text: latest events, best validation and remaining time."""

    def start(self, plan: Plan) -> None:
        """Start at a step."""
        self._plan, self._best = plan, plan.best
        self._latest: Row = {"step": plan.step}
        self._clock = Clock(plan)

    def advance(self, step: int) -> None:
        """Measure a step."""
        self._clock.add_step()

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Measure a validation."""
        with self._clock.validation():
            yield

    def write(self, row: Row) -> None:
        """Show an event; all numbers of training events are debug messages."""
        if row["kind"] == "train":
            self._latest = row
            logger.debug("%s", describe_details(row))
            self.show_training(row)
            return
        if row.get("is_best"):
            self._best = row
        self.show_line(describe(row, plan=self._plan, best=self._best))

    def show_training(self, row: Row) -> None:
        """Show a training event."""

    def show_line(self, line: str) -> None:
        """Show another event."""

    def numbers(self, digits: int) -> list[str]:
        """Return the loss, the best validation score and the throughput."""
        numbers = []
        if "loss" in self._latest:
            numbers.append(f"loss {format_number(self._latest['loss'], digits)}")
        if self._best is not None and (score := describe_score(self._best, digits)):
            numbers.append(f"valid {score}" if score.startswith("loss") else score)
        if "tokens_per_second" in self._latest:
            rate = format_rate(self._latest["tokens_per_second"])
            numbers.append(f"{rate} {self._plan.unit}/s")
        return numbers

    def time(self, step: int) -> str:
        """Return the remaining time, an upper limit with early stopping; empty if unknown."""
        remaining = self._clock.remaining(step)
        if remaining is None:
            return ""
        return f"{'≤' if self._plan.patience else ''}{format_seconds(remaining)}"


class BarDisplay(TextDisplay):
    """Progress bar with the latest numbers; other events are written above it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._step, self._due = 0, 0.0

    def start(self, plan: Plan) -> None:
        """Show the bar."""
        super().start(plan)
        self._step = plan.step
        self._draw()

    def advance(self, step: int) -> None:
        """Update the bar, if the last update is not too recent."""
        super().advance(step)
        self._step = step
        if time.perf_counter() >= self._due:
            self._draw()

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Show that a validation is under way."""
        self._draw("validating")
        with super().validating():
            yield

    def show_line(self, line: str) -> None:
        """Write an event above the bar."""
        self._screen.write(line)
        self._draw()

    def close(self) -> None:
        """Remove the bar."""
        self._screen.clear()

    def _draw(self, activity: str = "") -> None:
        self._screen.update(self.format_line(self._screen.width, activity))
        self._due = time.perf_counter() + REFRESH_SECONDS

    def format_line(self, width: int, activity: str = "") -> str:
        """Return the line; on narrow screens without throughput and score.

        Args:
            width: Maximum length.
            activity: Shown instead of the epoch.
        """
        plan, step = self._plan, self._step
        left = activity or f"epoch {plan.epoch(step)}"
        numbers = self.numbers(3)
        end = self.time(step) or f"{format_seconds(self._clock.seconds)} elapsed"
        while True:
            right = "  ".join([plan.steps(step), *numbers, end])
            if len(numbers) < 2 or len(left) + len(right) + 7 <= width:
                break
            numbers.pop()
        if not (plan.total_steps or plan.max_seconds):
            return f"{left}  step {right}"[:width]
        return fit_bar(left, plan.fraction(step, self._clock.seconds), right, width=width)


class LineDisplay(TextDisplay):
    """Log lines: training events in growing intervals, and all other events."""

    def start(self, plan: Plan) -> None:
        """Start at a step."""
        super().start(plan)
        self._due = 0.0

    def show_training(self, row: Row) -> None:
        """Log a line, if the last one is not too recent."""
        seconds = self._clock.seconds
        if seconds < self._due:
            return
        self._due = seconds + line_interval(seconds - self._plan.seconds)
        plan, step = self._plan, row["step"]
        numbers = self.numbers(4)
        if row.get("waiting", 0.0) > NOTEWORTHY_WAITING:
            numbers.append(f"{row['waiting']:.0%} of the time waiting for data")
        if left := self.time(step):
            numbers.append(f"{left} left")
        logger.info("epoch %s, step %s: %s", plan.epoch(step), plan.steps(step), ", ".join(numbers))

    def show_line(self, line: str) -> None:
        """Log an event."""
        logger.info("%s", line)


def choose_display() -> Logger:
    """Return a progress bar on a terminal or in a notebook, log lines otherwise."""
    screen = find_screen()
    return LineDisplay() if screen is None else BarDisplay(screen)


def describe(row: Row, *, plan: Plan, best: Row | None = None) -> str:
    """Describe an event other than a training event in one line.

    Args:
        row: The event.
        plan: Limits of the run.
        best: Event of the best validation, for the end of training.
    """
    if row["kind"] == "stop":
        return _describe_end(row, plan=plan, best=best)
    metrics = {name: value for name, value in row.items() if name not in _NOT_METRICS}
    if not metrics:
        metrics = {"value": row["value"]}
    numbers = ", ".join(
        f"{spell_metric(name)} {format_number(value)}" for name, value in metrics.items()
    )
    subject = "Average of weights" if row["kind"] == "average" else "Validation"
    note = " (best so far)" if row.get("is_best") else ""
    return f"{subject} at step {row['step']:,}: {numbers}{note}"


_NOT_METRICS = ("kind", "step", "epoch", "seconds", "value", "metric", "is_best")


def _describe_end(row: Row, *, plan: Plan, best: Row | None) -> str:
    seconds = row.get("seconds", 0.0)
    duration = f"{seconds:.0f} s" if seconds < 600 else format_seconds(seconds)
    done = f"after {row['step']:,} steps ({duration})"
    reasons = {
        "patience": f"{plan.patience} validations without improvement (train.patience)",
        "steps": "the limit of train.max_steps",
        "epochs": "the limit of train.max_epochs",
        "minutes": "the limit of train.max_minutes",
    }
    reason = row["reason"]
    ended = (
        f"Interrupted {done}." if reason == "interrupted" else f"Stopped {done}: {reasons[reason]}."
    )
    score = describe_score(best) if best else ""
    return f"{ended} Best validation {score} at step {best['step']:,}." if best and score else ended


def describe_details(row: Row) -> str:
    """Describe the numbers of a training event; `nll` only if it differs from the loss."""
    omitted = ["kind", "step", "epoch", "seconds", "tokens_per_second"]
    if row.get("nll") == row.get("loss"):
        omitted.append("nll")
    numbers = [
        f"{name.replace('_', ' ')} {format_number(value)}"
        for name, value in row.items()
        if name not in omitted
    ]
    return f"step {row['step']:,}: {', '.join(numbers)}"


def describe_score(row: Row, digits: int = 4) -> str:
    """Describe the metric of a validation that selects the best weights; empty if not finite."""
    name = row.get("metric", "value")  # rows of older versions do not name it
    if not math.isfinite(row[name]):
        return ""
    return f"{spell_metric(name)} {format_number(row[name], digits)}"


def spell_metric(name: str) -> str:
    """Return the name of a metric as in papers: `bleu_char` → `BLEU char`."""
    return re.sub(r"[a-z]+", lambda word: SPELLINGS.get(word[0], word[0]), name.replace("_", " "))


def format_number(value: Any, digits: int = 4) -> str:
    """Format a number with a few significant digits."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
