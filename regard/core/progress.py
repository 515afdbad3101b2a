"""Progress of long operations on standard error: one updated line, or log lines if redirected."""

import html
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import parent_process
from typing import Any, Protocol, TextIO, TypeVar

from regard.core.logging import is_first_process, logger
from regard.core.terminal import clean, unfiltered

Item = TypeVar("Item")

DELAY_SECONDS = 1.0
"""Time before a progress line appears, so that fast operations show none."""

REFRESH_SECONDS = 0.1
"""Time between two updates of a progress line."""

NOTEBOOK_LINES = 30
"""Number of permanent lines that a notebook shows above the progress line."""


class Screen(Protocol):
    """Output with one line that is updated in place."""

    @property
    def width(self) -> int:
        """Maximum length of the line."""

    def update(self, line: str) -> None:
        """Replace the line."""

    def write(self, line: str) -> None:
        """Write a permanent line above."""

    def clear(self) -> None:
        """Remove the line."""


class Terminal:
    """The last line of a terminal; log messages are written above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_visible = False

    @property
    def width(self) -> int:
        """Number of columns but one: a full line would wrap."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return (columns or 80) - 1

    def update(self, line: str) -> None:
        """Replace the line."""
        if not self._is_visible:
            logger.addFilter(self._erase)
            self._is_visible = True
        self._print(f"\r{clean(line)}\x1b[K")

    def write(self, line: str) -> None:
        """Write a permanent line above."""
        self._print(f"\r{clean(line)}\x1b[K\n")

    def clear(self) -> None:
        """Remove the line."""
        if self._is_visible:
            logger.removeFilter(self._erase)
            self._is_visible = False
            self._print("\r\x1b[K")

    def _erase(self, record: logging.LogRecord) -> bool:
        """Erase the line before a log message; the next update shows it again."""
        self._print("\r\x1b[K")
        return True

    def _print(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Notebook:
    """An output of a notebook cell."""

    width = 79

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line = ""
        self._handle: Any = None

    def update(self, line: str) -> None:
        """Replace the line."""
        self._line = line
        self._show()

    def write(self, line: str) -> None:
        """Write a permanent line above."""
        self._lines = [*self._lines[-NOTEBOOK_LINES + 1 :], line]
        self._show()

    def clear(self) -> None:
        """Remove the line."""
        if self._handle is not None:
            self.update("")

    def _show(self) -> None:
        ipython = import_module("IPython.display")
        text = html.escape("\n".join([*self._lines, self._line]).rstrip())
        # With the default line height, the rows of a notebook are far apart.
        page = ipython.HTML(f'<pre style="line-height: 1.2; margin: 0">{text}</pre>')
        if self._handle is None:
            self._handle = ipython.display(page, display_id=True)
        else:
            self._handle.update(page)


def find_screen() -> Screen | None:
    """Return the notebook or the terminal to show progress on; None if there is neither.

    Other processes than the first, worker processes and a logger that is set to warnings show
    nothing.
    """
    if logger.level > logging.INFO or not is_first_process() or parent_process() is not None:
        return None
    if _is_notebook():
        return Notebook()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return Terminal(unfiltered(sys.stderr))
    return None


def _is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, without importing IPython."""
    module = sys.modules.get("IPython")
    return module is not None and hasattr(module.get_ipython(), "kernel")


_is_suppressed = False
"""Whether operations show no progress, such as those inside an operation that shows its own."""

_label = ""
"""Label of the descriptions of operations."""

_running: "Counter | None" = None
"""Counter of the operation that is shown."""


@contextmanager
def without_progress() -> Iterator[None]:
    """Show no progress of operations in the block."""
    global _is_suppressed
    before, _is_suppressed = _is_suppressed, True
    try:
        yield
    finally:
        _is_suppressed = before


@contextmanager
def with_label(label: str) -> Iterator[None]:
    """Append a label to the descriptions of operations in the block."""
    global _label
    before, _label = _label, label
    try:
        yield
    finally:
        _label = before


class Counter:
    """Progress of one operation: a line on a screen, or a log line now and then."""

    def __init__(self, description: str, total: int | None) -> None:
        """Start counting; nothing is shown yet.

        Args:
            description: The operation, such as `Predicting`.
            total: Number of items, if known.
        """
        self.operation = description
        self._description = f"{description} {_label}".rstrip()
        self._total = total
        self._screen: Screen | None = None
        self._is_new = True
        self._num = 0
        self._started = time.perf_counter()
        self._due = self._started + DELAY_SECONDS

    def advance(self, num: int = 1) -> None:
        """Count items that are done."""
        self._num += num
        now = time.perf_counter()
        if now < self._due:
            return
        seconds = now - self._started
        if self._is_new:
            self._screen, self._is_new = find_screen(), False
            if self._screen is None and seconds < line_interval(0):
                self._due = self._started + line_interval(0)
                return
        if self._screen is not None:
            self._screen.update(self._format_line(seconds, self._screen.width))
            self._due = now + REFRESH_SECONDS
        else:
            logger.info("%s", self._format_message(seconds))
            self._due = now + line_interval(seconds)

    def refine(self, fraction: float) -> None:
        """Take the finished part, from 0 to 1, of an operation of the same name inside this one."""

    def stop(self) -> None:
        """Remove the line."""
        if self._screen is not None:
            self._screen.clear()

    def _format_line(self, seconds: float, width: int) -> str:
        if not self._total:
            return f"{self._description} {self._num:,}  {format_seconds(seconds)}"[:width]
        right = f"{self._num:,}/{self._total:,}  {format_seconds(self._remaining(seconds))}"
        return fit_bar(self._description, self._num / self._total, right, width=width)

    def _format_message(self, seconds: float) -> str:
        if not self._total:
            return f"{self._description}: {self._num:,} after {format_seconds(seconds)}"
        remaining = format_seconds(self._remaining(seconds))
        return f"{self._description}: {self._num:,} of {self._total:,}, {remaining} left"

    def _remaining(self, seconds: float) -> float:
        return seconds / max(self._num, 1) * max((self._total or 0) - self._num, 0)


def _is_silent() -> bool:
    return _is_suppressed or threading.current_thread() is not threading.main_thread()


@contextmanager
def counting(description: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show the progress of a block, which calls the yielded function with numbers of items.

    Blocks inside another one and blocks of other threads than the main one show nothing.

    Args:
        description: The operation, such as `Predicting`.
        total: Number of items, if known.
    """
    if _is_silent():
        yield _refine(description, total)
        return
    counter = Counter(description, total)
    try:
        with running(counter):
            yield counter.advance
    finally:
        counter.stop()


@contextmanager
def running(counter: Counter) -> Iterator[None]:
    """Show the progress of one counter only: that of operations inside the block is left out."""
    global _running
    before, _running = _running, counter
    try:
        with without_progress():
            yield
    finally:
        _running = before


def _refine(description: str, total: int | None) -> Callable[[int], None]:
    """Return a function that counts items for the counter of the same operation, if it runs."""
    counter = _running
    is_main = threading.current_thread() is threading.main_thread()
    if counter is None or counter.operation != description or not total or not is_main:
        return lambda num: None
    num_done = 0

    def advance(num: int) -> None:
        nonlocal num_done
        num_done += num
        counter.refine(num_done / total)

    return advance


def count_each(items: Iterable[Item], advance: Callable[[int], None]) -> Iterator[Item]:
    """Yield items and count each of them.

    Unlike a suspended `track`, a suspended iterator of this function does not suppress the progress
    of later operations: the block of `counting` ends with the operation.
    """
    for item in items:
        yield item
        advance(1)


def track(
    items: Iterable[Item],
    description: str,
    *,
    total: int | None = None,
    size: Callable[[Item], int] = lambda item: 1,
) -> Iterator[Item]:
    """Yield items and show the progress.

    Args:
        items: Any items.
        description: The operation, such as `Predicting`.
        total: Sum of the sizes of all items, if known.
        size: Size of an item, such as the number of examples of a batch.
    """
    with counting(description, total) as advance:
        for item in items:
            yield item
            advance(size(item))


@contextmanager
def show_message(description: str) -> Iterator[None]:
    """Show a line on a screen during a block whose progress cannot be measured."""
    screen = None if _is_silent() else find_screen()
    if screen is None:
        yield
        return
    screen.update(f"{description} …"[: screen.width])
    try:
        yield
    finally:
        screen.clear()


def line_interval(seconds: float) -> float:
    """Return the seconds between two log lines of an operation that has taken `seconds`."""
    return max(10.0, seconds / 20)


def fit_bar(left: str, fraction: float, right: str, *, width: int, min_bar: int = 5) -> str:
    """Return `left`, a progress bar and `right`, in `width` columns; no bar if it is too narrow.

    Args:
        left: Text before the bar.
        fraction: Part of the bar that is filled, from 0 to 1.
        right: Text after the bar.
        width: Number of columns.
        min_bar: Minimum width of the bar.
    """
    num = min(width - len(left) - len(right) - 2, 40)
    if num < min_bar:
        return f"{left} {right}"[:width]
    halves = int(2 * num * min(max(fraction, 0.0), 1.0))
    filled = "━" * (halves // 2) + "╸" * (halves % 2)
    return f"{left} {filled.ljust(num, '─')} {right}"


def format_seconds(seconds: float) -> str:
    """Format a duration as hours, minutes and seconds: `0:02:10`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def format_rate(value: float) -> str:
    """Format a rate with two or three digits: `7.1k`, `812`, `3.4`."""
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit * 0.9995:
            scaled = value / limit
            return f"{scaled:.0f}{unit}" if scaled >= 99.5 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"
