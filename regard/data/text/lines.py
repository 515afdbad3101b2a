"""Files → lines of text, or a sentence on why they are not text."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from regard.core.errors import DataError

MAX_LINE_BYTES = 1_000_000
"""No sentence is longer; a file with such a line is hardly text."""

STANDARD_INPUT = "-"

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some editors open a file with it; it is no part of the text."""


def file_name(path: str | Path) -> str:
    """Return what a message calls a file."""
    return "Standard input" if str(path) == STANDARD_INPUT else str(path)


def read_lines(path: str | Path) -> Iterator[str]:
    """Read the lines of a text file, plain or `.gz`, or of standard input (`-`), as UTF-8."""
    with _open(path) as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            place = f"{file_name(path)}, line {number:,},"
            if len(raw.removesuffix(b"\n")) > MAX_LINE_BYTES:
                size = len(raw) + _count_rest(file)
                raise DataError(
                    f"{place} has {size:,} bytes, but a line may have {MAX_LINE_BYTES:,}. "
                    "Put one sentence on each line."
                )
            raw = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
            yield decode(raw.removesuffix(b"\n").removesuffix(b"\r"), place)


def read_bytes(path: str | Path) -> bytes:
    """Read a file whole, plain or `.gz`, or standard input (`-`)."""
    with _open(path) as file:
        return file.read()


@contextmanager
def _open(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file; what goes wrong while it is open is named, too."""
    if str(path) == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder. Name a file inside it.")
    try:
        is_packed = path.suffix.lower() == ".gz"
        with gzip.open(path, "rb") if is_packed else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file ({error}). Pack it again.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None


def _count_rest(file: BinaryIO) -> int:
    size = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        size += len(raw)
        if raw.endswith(b"\n"):
            break
    return size


def decode(raw: bytes, place: str) -> str:
    """Decode UTF-8, or raise an error that names the place."""
    if b"\0" in raw:
        raise DataError(
            f"{place} holds a NUL byte, so this is not UTF-8 text. If it is UTF-16, convert it: "
            "`iconv -f utf-16 -t utf-8 OLD > NEW`."
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{place} is not UTF-8 (byte 0x{raw[error.start]:02x} at position "
            f"{error.start + 1:,}). "
            "Convert the file: `iconv -f latin1 -t utf-8 OLD > NEW`."
        ) from None
