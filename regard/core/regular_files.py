"""Check of input files: data are read from regular files, not from pipes, devices and sockets."""

import os
import stat
from pathlib import Path

from regard.core.errors import DataError

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def find_special_kind(path: str | Path) -> str:
    """Return what a path is if reading it could wait or run forever; empty for all others."""
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "")
    except (OSError, ValueError):
        return ""


def check_regular(path: str | Path) -> None:
    """Raise `DataError` for a pipe, a device or a socket, without opening it."""
    if kind := find_special_kind(path):
        raise DataError(
            f"{path} is {kind}, but must be a file: data may be read several times. Save it to a "
            "file first, or give `-` for standard input where a command reads it."
        )
