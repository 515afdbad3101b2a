"""A range coder and its files: integers → as few bytes as their frequencies allow, and back.

Martin 1979, in integers alone, so that every machine writes and reads the same bytes. A message is
a number in an interval that each symbol narrows to its share; the rarer, the narrower, the more
digits it takes to name a number in it.
"""

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise, repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.core.files import replacing

PRECISION = 24
"""Frequencies of a table sum to two to the power of this."""

TOTAL = 1 << PRECISION

_BITS = 64
_FULL = 1 << _BITS
# Below this, the first byte of the interval is settled and leaves it.
_LEAST = _FULL >> 8

MAGIC = b"RGDC"
VERSION = 1

_HEAD = struct.Struct(">4sBII8s")
"""Magic, version, number of codes, width of a code, maker."""

_CHECK = struct.Struct(">I")
"""Checksum of the head and of all that follows."""

HEAD_BYTES = _HEAD.size + _CHECK.size
"""Bytes of a file that are no codes."""

_MAX_SYMBOLS = 1 << 30


class Frequencies:
    """How often each symbol is expected."""

    def __init__(self, counts: Sequence[int]) -> None:
        """Bring counts to frequencies; a symbol never counted can still be written.

        Args:
            counts: How often each symbol was seen; symbols are numbered from 0 on.
        """
        if not 1 <= len(counts) <= TOTAL // 2 or min(counts) < 0:
            raise DataError(
                f"`counts` must hold 1 to {TOTAL // 2:,} numbers from 0 on, but there are "
                f"{len(counts):,}, the least of them {min(counts, default=0)}."
            )
        # One for each symbol, the rest by its share; rounding is left to the most frequent.
        spare, seen = TOTAL - len(counts), max(1, sum(counts))
        sizes = [1 + spare * count // seen for count in counts]
        sizes[sizes.index(max(sizes))] += TOTAL - sum(sizes)
        self.starts = [0, *accumulate(sizes)]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def bits(self) -> NDArray[np.float64]:
        """What each symbol takes, in bits."""
        sizes = np.array([end - start for start, end in pairwise(self.starts)])
        return -np.log2(sizes / TOTAL)


def encode(symbols: Iterable[int], tables: Iterable[Frequencies]) -> bytes:
    """Write symbols as bytes.

    Args:
        symbols: Whole numbers, each below the length of its table.
        tables: The frequencies at each position; at least as many.
    """
    low, width, written = 0, _FULL, bytearray()
    for symbol, table in zip(symbols, tables, strict=False):
        if not 0 <= symbol < len(table):
            raise DataError(f"Symbols must be from 0 to {len(table) - 1}, but one is {symbol}.")
        share = width >> PRECISION
        low += share * table.starts[symbol]
        width = share * (table.starts[symbol + 1] - table.starts[symbol])
        if low >= _FULL:
            low -= _FULL
            _carry(written)
        while width < _LEAST:
            written.append(low >> _BITS - 8)
            low = (low << 8) % _FULL
            width <<= 8
    # The interval is wider than this, so that one byte names a number in it.
    last = -(-low // _LEAST)
    if last > 255:
        last -= 256
        _carry(written)
    written.append(last)
    # What is missing is read as zeros.
    return bytes(written).rstrip(b"\0")


def decode(data: bytes, tables: Iterable[Frequencies]) -> Iterator[int]:
    """Read as many symbols as there are tables from what `encode` wrote with the same tables."""
    ahead = iter(data)
    # How far the message's number lies above the interval's lower end.
    offset = int.from_bytes(bytes(next(ahead, 0) for _ in range(_BITS // 8)))
    width = _FULL
    for table in tables:
        share = width >> PRECISION
        found = offset // share
        if found >= TOTAL:
            raise DataError("The coded numbers are damaged: they lie beyond every symbol.")
        symbol = bisect_right(table.starts, found) - 1
        offset -= share * table.starts[symbol]
        width = share * (table.starts[symbol + 1] - table.starts[symbol])
        while width < _LEAST:
            offset = offset << 8 | next(ahead, 0)
            width <<= 8
        yield symbol


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


def _carry(written: bytearray) -> None:
    """Add one to what is written, as if it were one long number."""
    position = len(written) - 1
    while written[position] == 255:
        written[position] = 0
        position -= 1
    written[position] += 1
