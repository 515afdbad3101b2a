"""Limit of open files and connections of this process."""

from contextlib import suppress
from importlib import import_module
from typing import Any


def allow_open_files() -> None:
    """Raise the limit of open files as far as the system allows; each connection is one."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit.
        resource: Any = import_module("resource")
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
