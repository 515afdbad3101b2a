"""Logger of the package. Only the first process logs."""

import logging
import os

logger = logging.getLogger("regard")


def is_first_process() -> bool:
    """Return whether this is the process that prints and writes files."""
    return os.environ.get("RANK", "0") == "0"


def log_to(handler: logging.Handler, level: int = logging.INFO) -> None:
    """Send the messages of the package to `handler` only."""
    logger.handlers[:] = [handler]
    logger.setLevel(level if is_first_process() else logging.ERROR)
    logger.propagate = False
