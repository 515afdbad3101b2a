"""Limit of compressed data, so that a small file cannot expand to more than a memory holds."""

import gzip
import io
import os
import zipfile
from pathlib import Path

from regard.core.errors import DataError

FREE_BYTES = 16 << 20
"""Size up to which compressed data may expand by any factor."""

MAX_RATIO = 100
"""Maximum size of larger data relative to their compressed size; texts have at most 20."""

MAX_MEMBER_BYTES = 1 << 30
"""Maximum size of a member of a `.zip` file, which is read completely."""


def check_expansion(name: str, size: int, compressed: int) -> None:
    """Raise `DataError` if data are much larger than their compressed form.

    Args:
        name: The compressed file or member, for the message.
        size: Number of bytes, so far.
        compressed: Number of compressed bytes.
    """
    if size > max(FREE_BYTES, MAX_RATIO * compressed):
        raise DataError(
            f"{name} expands from {compressed:,} to {size:,} bytes or more, over {MAX_RATIO} times "
            "its size, so it is probably no data. If it is, unpack it first."
        )


def check_member(name: str, info: zipfile.ZipInfo) -> None:
    """Raise `DataError` if a member of a `.zip` file is too large to be read completely.

    Args:
        name: The member, for the message.
        info: Its sizes. Reading stops at the stated size, so a false one does no harm.
    """
    check_expansion(name, info.file_size, info.compress_size)
    if info.file_size > MAX_MEMBER_BYTES:
        raise DataError(
            f"{name} has {info.file_size:,} bytes, but a member of an archive may have "
            f"{MAX_MEMBER_BYTES:,}. Unpack the archive."
        )


class _Expanded(io.RawIOBase):
    """Content of a gzip file; an error as soon as it is much larger than the file."""

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        self._packed = path.open("rb")
        self._file = gzip.GzipFile(fileobj=self._packed, mode="rb")
        self._compressed = os.stat(path).st_size
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        self._size += len(data)
        check_expansion(self._name, self._size, self._compressed)
        return len(data)

    def fileno(self) -> int:
        """Return the descriptor of the compressed file, whose position is that of reading."""
        return self._packed.fileno()

    def close(self) -> None:
        self._file.close()
        self._packed.close()
        super().close()


def open_gzip(path: Path) -> io.BufferedReader:
    """Open a gzip file to read its content, which may not be much larger than the file."""
    return io.BufferedReader(_Expanded(path), 1 << 16)
