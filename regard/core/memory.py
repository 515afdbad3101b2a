"""Memory that the C library keeps after it is freed."""

import ctypes
import sys
from functools import cache
from typing import Any


def release_memory() -> None:
    """Return freed memory to the operating system, on Linux with glibc; elsewhere do nothing.

    The C library keeps freed blocks for later ones of a similar size. Call it between phases that
    need different tensors, such as training and search, whose memory would add up; not after each
    step, since the next one pays for every page that it needs again (docs/log.md).
    """
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Any:
    """Return the function `malloc_trim` of the C library, or None if it has none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
