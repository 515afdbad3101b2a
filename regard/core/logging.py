"""Logger of the package. Only the first process logs."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("regard")


def is_first_process() -> bool:
    """Return whether this is the process that prints and writes files."""
    return os.environ.get("RANK", "0") == "0"


def log_to(handler: logging.Handler, level: int = logging.INFO) -> None:
    """Send the messages of the package to `handler` only."""
    logger.handlers[:] = [handler]
    logger.setLevel(level if is_first_process() else logging.ERROR)
    logger.propagate = False


@contextmanager
def default_logging() -> Iterator[None]:
    """Log to standard error during a block, unless the program has set up logging.

    A level that was set for the logger of the package is kept; otherwise it is `INFO`.
    """
    if logger.hasHandlers():
        yield
        return
    level, propagate = logger.level, logger.propagate
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log_to(handler, level or logging.INFO)
    try:
        yield
    finally:
        logger.handlers[:], logger.propagate = [], propagate
        logger.setLevel(level)


@contextmanager
def muted() -> Iterator[None]:
    """Drop the messages of this thread during a block."""
    thread = threading.get_ident()

    def is_other(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)
