"""Lines of UTF-8 text files, plain or compressed, with errors that name the line."""

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from regard.core.errors import DataError
from regard.core.files import check_regular
from regard.data.expansion import open_gzip
from regard.data.formats import HEAD_BYTES, check_is_text

MAX_LINE_BYTES = 1_000_000
"""Maximum length of a line; a file with a longer line is probably not text."""

STANDARD_INPUT = "-"

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Bytes that some editors write at the start of a file; not part of the text."""


class Position:
    """Position in the file that is read."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None

    def watch(self, file: BinaryIO) -> None:
        """Take the file that is opened last."""
        self._file = file

    def fraction(self) -> float | None:
        """Return the part of the bytes, from 0 to 1, that is read; None for a pipe."""
        if self._file is None:
            return None
        try:
            # The system's position: that of a compressed file, and also while a thread reads.
            handle = self._file.fileno()
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or not status.st_size:
                return None
            return min(os.lseek(handle, 0, os.SEEK_CUR) / status.st_size, 1.0)
        except (OSError, ValueError):  # not a file of the system, or already closed
            return 1.0 if self._file.closed else None


_position: Position | None = None
"""Position in the file that is opened next, if it is of interest."""


@contextmanager
def watching_position() -> Iterator[Position]:
    """Yield the position in the file of lines that is opened in the block."""
    global _position
    before, position = _position, Position()
    _position = position
    try:
        yield position
    finally:
        _position = before


def file_name(path: str | Path) -> str:
    """Return the name of a file in messages."""
    return "Standard input" if str(path) == STANDARD_INPUT else str(path)


def read_lines(path: str | Path, *, errors: dict[int, DataError] | None = None) -> Iterator[str]:
    """Read the lines of a text file, plain or `.gz`, or of standard input (`-`), as UTF-8.

    Args:
        path: The file.
        errors: Takes the errors of lines that are not UTF-8, by line number; these lines are empty
            then. If not given, the first error is raised.
    """
    with _open(path) as file:
        if isinstance(file, BufferedReader):  # not replaced standard input
            check_is_text(file_name(path), file.peek(HEAD_BYTES)[:HEAD_BYTES])
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            location = f"{file_name(path)}, line {number:,},"
            if len(raw.removesuffix(b"\n")) > MAX_LINE_BYTES:
                size = len(raw) + _count_rest(file)
                raise DataError(
                    f"{location} has {size:,} bytes, but a line may have {MAX_LINE_BYTES:,}. "
                    "Put one sentence on each line."
                )
            raw = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
            try:
                line = decode(raw.removesuffix(b"\n").removesuffix(b"\r"), location)
            except DataError as error:
                # A NUL byte is a sign of another encoding, in which lines end elsewhere.
                if errors is None or b"\0" in raw:
                    raise
                errors[number], line = error, ""
            yield line


def read_raw_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a text file, plain or `.gz`, with their line ends and of any length."""
    with _open(path) as file:
        head = cast(BufferedReader, file).peek(HEAD_BYTES)[:HEAD_BYTES]
        check_is_text(file_name(path), head)
        yield from file


def read_bytes(path: str | Path) -> bytes:
    """Read all bytes of a file, plain or `.gz`, or of standard input (`-`)."""
    with _open(path) as file:
        return file.read()


@contextmanager
def _open(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file; raise `DataError` for errors while opening and reading it."""
    if str(path) == STANDARD_INPUT:
        # Kept until the end: Python may exit while a thread waits for a line, and closes the
        # stream if there is no other reference, which such a thread would make fatal.
        stream = sys.stdin
        _watch(stream.buffer)
        yield stream.buffer
        return
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder. Name a file inside it.")
    check_regular(path)
    try:
        is_compressed = path.suffix.lower() == ".gz"
        with open_gzip(path) if is_compressed else path.open("rb") as file:
            _watch(file)
            yield file
    except FileNotFoundError:
        raise DataError(f"{path} does not exist.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file ({error}). Pack it again.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _watch(file: BinaryIO) -> None:
    if _position is not None:
        _position.watch(file)


def _count_rest(file: BinaryIO) -> int:
    size = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        size += len(raw)
        if raw.endswith(b"\n"):
            break
    return size


def decode(raw: bytes, location: str) -> str:
    """Decode UTF-8, or raise an error that names the location."""
    if b"\0" in raw:
        raise DataError(
            f"{location} holds a NUL byte, so this is not UTF-8 text. If it is UTF-16, convert it: "
            "`iconv -f utf-16 -t utf-8 OLD > NEW`."
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{location} is not UTF-8 (byte 0x{raw[error.start]:02x} at position "
            f"{error.start + 1:,}). "
            "Convert the file: `iconv -f latin1 -t utf-8 OLD > NEW`."
        ) from None
