"""Progress of prediction for many sources, whose number is estimated while they are read."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from regard.core.progress import Counter, fit_bar, format_rate, format_seconds, running


class SourceCounter(Counter):
    """Number of predicted sources, throughput, and time left.

    The total is estimated from the part of the file that is read, so the file is read only once.
    """

    def __init__(self, noun: str, fraction: Callable[[], float | None]) -> None:
        """Start counting; nothing is shown yet.

        Args:
            noun: What a source is, in the plural, such as `lines`.
            fraction: Returns the part of the input that is read, from 0 to 1; None if unknown.
        """
        super().__init__("Predicting", None)
        self._noun = noun
        self._fraction = fraction
        self._num_before = 0
        self._group = 0
        self._part = 0.0

    def __enter__(self) -> "SourceCounter":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, num_before: int) -> None:
        """Measure the throughput from now on.

        Args:
            num_before: Number of sources that need no prediction, since an earlier command did it.
        """
        self._num_before = num_before
        self._started = time.perf_counter()

    @contextmanager
    def group(self, size: int) -> Iterator[None]:
        """Count a group of sources that are predicted in the block.

        Args:
            size: Number of sources.
        """
        self._group, self._part = size, 0.0
        with running(self):
            self.advance(0)
            yield
        self._group, self._part = 0, 0.0
        self.advance(size)

    def refine(self, fraction: float) -> None:
        """Take the finished part of the group, from 0 to 1."""
        self._part = fraction * self._group
        self.advance(0)

    def _format_line(self, seconds: float, width: int) -> str:
        total, done = self._total_sources, self._num_done
        rate = f"{format_rate(self._rate(seconds))} {self._noun}/s"
        if total is None:
            return f"{self._description} {done:,}  {rate}  {format_seconds(seconds)}"[:width]
        right = f"{done:,}/~{total:,}  {rate}  {self._format_left(seconds, total)}"
        return fit_bar(self._description, done / max(total, 1), right, width=width)

    def _format_message(self, seconds: float) -> str:
        total, done = self._total_sources, self._num_done
        rate = f"{format_rate(self._rate(seconds))} {self._noun}/s"
        if total is None:
            return f"{self._description}: {done:,} after {format_seconds(seconds)}, {rate}"
        left = self._format_left(seconds, total)
        return f"{self._description}: {done:,} of about {total:,}, {rate}, {left} left"

    @property
    def _num_done(self) -> int:
        return self._num_before + self._num + int(self._part)

    @property
    def _total_sources(self) -> int | None:
        """Estimated number of all sources; None if it is unknown."""
        fraction = self._fraction()
        if not fraction:
            return None
        num_read = self._num_before + self._num + self._group
        if fraction == 1:
            return num_read
        # Two digits are enough for an estimate, and do not flicker.
        return max(_round(num_read / fraction), num_read)

    def _rate(self, seconds: float) -> float:
        return (self._num + self._part) / max(seconds, 1e-9)

    def _format_left(self, seconds: float, total: int) -> str:
        num = self._num + self._part
        return format_seconds(seconds / num * (total - self._num_done)) if num else "-:--:--"


def _round(value: float) -> int:
    """Round to two digits."""
    unit: int = 10 ** max(len(str(int(value))) - 2, 0)
    return round(value / unit) * unit
