"""One logger for the whole package; only the first process speaks."""

import logging
import os

logger = logging.getLogger("regard")


def is_first_process() -> bool:
    """Tell whether this process is the one that prints and writes files."""
    return os.environ.get("RANK", "0") == "0"


def speak_through(handler: logging.Handler, level: int = logging.INFO) -> None:
    """Send the package's messages to `handler`, replacing what was there before."""
    logger.handlers[:] = [handler]
    logger.setLevel(level if is_first_process() else logging.ERROR)
    logger.propagate = False
