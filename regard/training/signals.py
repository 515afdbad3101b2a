"""Ctrl-C and SIGTERM, which may come at any moment, held back while something must be whole."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn


class Interrupts:
    """Inside `with`, both signals raise `KeyboardInterrupt`, but never in a held section.

    Only the first one does: a second, from an impatient person or a parent process, must not
    disturb how training ends. Signals belong to the main thread; in any other thread nothing is
    changed.
    """

    def __init__(self) -> None:
        self._is_held = False
        self._is_pending = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        self._is_held = self._is_pending = False
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back until the end of the block, then let them through."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        if self._is_pending:
            self._interrupt()

    def ignore(self) -> None:
        """Hold signals back for good: training is over and only saving is left."""
        self._is_held = True

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self._is_held:
            self._interrupt()
        self._is_pending = True

    def _interrupt(self) -> NoReturn:
        self._is_held, self._is_pending = True, False
        raise KeyboardInterrupt
