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


def _handled() -> list[signal.Signals]:
    """Return the signals to handle."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    # Windows has no SIGHUP.
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) != signal.SIG_IGN:
        numbers.append(hang_up)
    return numbers
