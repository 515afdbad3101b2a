"""Memory that the C library keeps after it is freed."""

import ctypes
import sys
import time
from functools import cache
from typing import Any


def release_memory() -> None:
    """Return freed memory to the operating system, on Linux with glibc; elsewhere do nothing.

    The C library keeps freed blocks for later ones. Tensors of batches of other shapes rarely fit
    into them, so without this the resident memory of a training on a CPU grows for many steps.
    """
    trim = _find_trim()
    if trim is not None:
        trim(0)


class RegularRelease:
    """Release of freed memory at intervals, since each costs page faults in the next step.

    Args:
        is_enabled: Whether to release memory at all.
        seconds: Minimum time between two releases.
    """

    def __init__(self, *, is_enabled: bool = True, seconds: float = 10.0) -> None:
        self._is_enabled = is_enabled
        self._seconds = seconds
        self._last = time.monotonic()

    def step(self) -> None:
        """Release memory if the last time was long ago; called after each step."""
        now = time.monotonic()
        if self._is_enabled and now - self._last >= self._seconds:
            release_memory()
            self._last = now


@cache
def _find_trim() -> Any:
    """Return the function `malloc_trim` of the C library, or None if it has none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
