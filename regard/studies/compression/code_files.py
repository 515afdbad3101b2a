"""Codes in a file: a short head that says what they are, and what the range coder made of them."""

import struct
import zlib
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.core.files import replacing
from regard.studies.compression.range_coder import Frequencies, decode, encode

MAGIC = b"RGDC"
VERSION = 1

_HEAD = struct.Struct(">4sBII8s")
"""Magic, version, number of codes, width of a code, maker."""

_CHECK = struct.Struct(">I")
"""Checksum of the head and of all that follows."""

HEAD_BYTES = _HEAD.size + _CHECK.size
"""Bytes of a file that are no codes."""

_MAX_SYMBOLS = 1 << 30


def write_codes(
    path: Path, codes: NDArray[np.integer], tables: Sequence[Frequencies], *, maker: bytes
) -> int:
    """Write codes to a file and return its size in bytes.

    Args:
        path: The file.
        codes: (B, D), whole numbers, each below the length of its column's table.
        tables: What is expected in each column.
        maker: 8 bytes that tell who can read the codes.
    """
    num, width = codes.shape
    if width != len(tables):
        raise DataError(
            f"There must be a table for each of {width} columns, but are {len(tables)}."
        )
    payload = encode(codes.ravel().tolist(), chain.from_iterable(repeat(tables, num)))
    head = _HEAD.pack(MAGIC, VERSION, num, width, maker)
    with replacing(path) as temporary:
        temporary.write_bytes(head + _CHECK.pack(zlib.crc32(head + payload)) + payload)
    return HEAD_BYTES + len(payload)


def read_codes(path: Path, tables: Sequence[Frequencies], *, maker: bytes) -> NDArray[np.int64]:
    """Read the codes (B, D) of a file, or say why that cannot be done.

    Args:
        path: The file.
        tables: What was expected in each column when it was written.
        maker: Who wrote it.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None
    if not data.startswith(MAGIC):
        raise DataError(f"{path} holds no codes. Give a file that `regard compress` wrote.")
    if len(data) < HEAD_BYTES:
        raise DataError(f"{path} ends within its first {HEAD_BYTES} bytes. Compress anew.")
    _, version, num, width, written_by = _HEAD.unpack_from(data)
    if version != VERSION:
        raise DataError(
            f"{path} was written in version {version}; this reads version {VERSION}. "
            "Upgrade with `pip install -U regard`."
        )
    payload = data[HEAD_BYTES:]
    if (zlib.crc32(data[: _HEAD.size] + payload),) != _CHECK.unpack_from(data, _HEAD.size):
        raise DataError(f"{path} is damaged or cut short: its checksum is another. Compress anew.")
    if written_by != maker or width != len(tables):
        raise DataError(
            f"{path} was written by another model, {written_by.hex()}, but this one is "
            f"{maker.hex()}. Restore with the run that compressed it."
        )
    if num * width > _MAX_SYMBOLS:
        raise DataError(f"{path} says that it holds {num * width:,} numbers, which is too many.")
    symbols = decode(payload, chain.from_iterable(repeat(tables, num)))
    return np.fromiter(symbols, np.int64, num * width).reshape(num, width)
