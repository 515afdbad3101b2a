"""Handling of Ctrl-C, SIGTERM and SIGHUP, deferred during sections that must complete."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn


class Interrupts:
    """Context in which signals raise `KeyboardInterrupt`, but not in `deferred` blocks.

    The signals are SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal), except for a SIGHUP
    that is ignored already, as `nohup` does.

    Only the first signal raises: a second one, from the user or a parent process, must not
    interrupt the end of training. Signal handlers work in the main thread only; in other threads
    nothing changes.
    """

    def __init__(self) -> None:
        self._is_deferred = False
        self._is_pending = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        self._is_deferred = self._is_pending = False
        if threading.current_thread() is threading.main_thread():
            for number in _handled():
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer signals until the end of the block."""
        self._is_deferred = True
        try:
            yield
        finally:
            self._is_deferred = False
        if self._is_pending:
            self._interrupt()

    def ignore(self) -> None:
        """Ignore further signals: training is over and only saving remains."""
        self._is_deferred = True

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self._is_deferred:
            self._interrupt()
        self._is_pending = True

    def _interrupt(self) -> NoReturn:
        self._is_deferred, self._is_pending = True, False
        raise KeyboardInterrupt


class AgreedInterrupts(Interrupts):
    """Interrupts of one of several processes: all of them are interrupted at the same step.

    A signal is only recorded. `deferred` blocks raise `KeyboardInterrupt` after `agree`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_alone = False
        self._is_agreed = False

    @property
    def is_pending(self) -> bool:
        """Whether this process has received a signal."""
        return self._is_pending

    def agree(self) -> None:
        """Record that one of the processes has received a signal."""
        self._is_agreed = True

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Raise at the end of the block if the processes have agreed on it."""
        yield
        if self._is_agreed:
            self._is_agreed = False
            raise KeyboardInterrupt

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Raise during the block, in which the other processes wait for this one."""
        self._is_alone = True
        try:
            if self._is_pending and self._previous:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_alone = False

    def ignore(self) -> None:
        """Ignore further signals: training is over and only saving remains."""
        self._is_alone = False

    def _receive(self, number: int, frame: FrameType | None) -> None:
        is_first = not self._is_pending
        self._is_pending = True
        if self._is_alone and is_first:
            raise KeyboardInterrupt


def _handled() -> list[signal.Signals]:
    """Return the signals to handle."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    # Windows has no SIGHUP.
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) != signal.SIG_IGN:
        numbers.append(hang_up)
    return numbers
