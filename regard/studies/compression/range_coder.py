"""Range coder: entropy coding of integers by their frequencies, and its file format.

Martin 1979, in integer arithmetic, so that the bytes are the same on every machine. Each symbol
narrows an interval in proportion to its frequency; the message is a number in the last interval.
Rarer symbols narrow it more and take more bits.
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
from regard.core.files import check_regular, replacing

PRECISION = 24
"""Frequencies of a table sum to 2 ** PRECISION."""

TOTAL = 1 << PRECISION

_BITS = 64
_FULL = 1 << _BITS
# Below this width, the first byte of the interval is fixed and is written.
_MIN_WIDTH = _FULL >> 8

MAGIC = b"RGDC"
VERSION = 1

_HEADER = struct.Struct(">4sBII8s")
"""Magic number, version, number of codes, dimension of a code, model id."""

_CHECK = struct.Struct(">I")
"""Checksum of the header and the payload."""

HEADER_BYTES = _HEADER.size + _CHECK.size
"""Size of the header, including the checksum."""

_MAX_SYMBOLS = 1 << 30


class Frequencies:
    """Frequency table of symbols."""

    def __init__(self, counts: Sequence[int]) -> None:
        """Scale counts to frequencies of at least 1, so that unseen symbols can be encoded.

        Args:
            counts: Count of each symbol; symbols are numbered from 0.
        """
        if not 1 <= len(counts) <= TOTAL // 2 or min(counts) < 0:
            raise DataError(
                f"`counts` must hold 1 to {TOTAL // 2:,} numbers that are at least 0, but has "
                f"{len(counts):,}, the smallest of them {min(counts, default=0)}."
            )
        # 1 for each symbol, the rest in proportion; the most frequent takes the rounding error.
        spare, total = TOTAL - len(counts), max(1, sum(counts))
        sizes = [1 + spare * count // total for count in counts]
        sizes[sizes.index(max(sizes))] += TOTAL - sum(sizes)
        self.starts = [0, *accumulate(sizes)]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def bits(self) -> NDArray[np.float64]:
        """Cost of each symbol in bits."""
        sizes = np.array([end - start for start, end in pairwise(self.starts)])
        return -np.log2(sizes / TOTAL)


def encode(symbols: Iterable[int], tables: Iterable[Frequencies]) -> bytes:
    """Encode symbols as bytes.

    Args:
        symbols: Integers, each less than the length of its table.
        tables: Frequency table of each symbol; at least as many as symbols.
    """
    low, width, output = 0, _FULL, bytearray()
    for symbol, table in zip(symbols, tables, strict=False):
        if not 0 <= symbol < len(table):
            raise DataError(f"Symbols must be from 0 to {len(table) - 1}, but one is {symbol}.")
        share = width >> PRECISION
        low += share * table.starts[symbol]
        width = share * (table.starts[symbol + 1] - table.starts[symbol])
        if low >= _FULL:
            low -= _FULL
            _carry(output)
        while width < _MIN_WIDTH:
            output.append(low >> _BITS - 8)
            low = (low << 8) % _FULL
            width <<= 8
    # The interval is at least `_MIN_WIDTH` wide, so that one byte selects a number in it.
    last = -(-low // _MIN_WIDTH)
    if last > 255:
        last -= 256
        _carry(output)
    output.append(last)
    # The decoder reads missing bytes as zeros.
    return bytes(output).rstrip(b"\0")


def decode(data: bytes, tables: Iterable[Frequencies]) -> Iterator[int]:
    """Decode one symbol per table from the bytes that `encode` returns for the same tables."""
    remaining = iter(data)
    # Distance of the message from the lower end of the interval.
    offset = int.from_bytes(bytes(next(remaining, 0) for _ in range(_BITS // 8)))
    width = _FULL
    for table in tables:
        share = width >> PRECISION
        frequency = offset // share
        if frequency >= TOTAL:
            raise DataError("The codes are damaged: a value is outside the frequency table.")
        symbol = bisect_right(table.starts, frequency) - 1
        offset -= share * table.starts[symbol]
        width = share * (table.starts[symbol + 1] - table.starts[symbol])
        while width < _MIN_WIDTH:
            offset = offset << 8 | next(remaining, 0)
            width <<= 8
        yield symbol


def write_codes(
    path: Path, codes: NDArray[np.integer], tables: Sequence[Frequencies], *, model_id: bytes
) -> int:
    """Write codes to a file and return its size in bytes.

    Args:
        path: The file.
        codes: (B, D), integers, each less than the length of its column's table.
        tables: Frequency table of each column.
        model_id: 8 bytes that identify the model.
    """
    num, width = codes.shape
    if width != len(tables):
        raise DataError(
            f"There must be a table for each of the {width} columns, but there are {len(tables)}."
        )
    payload = encode(codes.ravel().tolist(), chain.from_iterable(repeat(tables, num)))
    header = _HEADER.pack(MAGIC, VERSION, num, width, model_id)
    with replacing(path) as temporary:
        temporary.write_bytes(header + _CHECK.pack(zlib.crc32(header + payload)) + payload)
    return HEADER_BYTES + len(payload)


def read_codes(path: Path, tables: Sequence[Frequencies], *, model_id: bytes) -> NDArray[np.int64]:
    """Read the codes (B, D) of a file; raise `DataError` if it cannot be read.

    Args:
        path: The file.
        tables: Frequency tables with which the file was written.
        model_id: Identifier of the model with which the file was written.
    """
    try:
        check_regular(path)
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None
    if not data.startswith(MAGIC):
        raise DataError(f"{path} holds no codes. Give a file that `regard compress` wrote.")
    if len(data) < HEADER_BYTES:
        raise DataError(
            f"{path} ends within its header of {HEADER_BYTES} bytes. Compress the images again."
        )
    _, version, num, width, written_by = _HEADER.unpack_from(data)
    if version != VERSION:
        raise DataError(
            f"{path} was written in version {version}, but only version {VERSION} can be read. "
            "Upgrade with `pip install -U regard`."
        )
    payload = data[HEADER_BYTES:]
    if (zlib.crc32(data[: _HEADER.size] + payload),) != _CHECK.unpack_from(data, _HEADER.size):
        raise DataError(
            f"{path} is damaged or truncated: its checksum differs. Compress the images again."
        )
    if written_by != model_id or width != len(tables):
        raise DataError(
            f"{path} was written by another model, {written_by.hex()}, but this one is "
            f"{model_id.hex()}. Restore with the run that compressed it."
        )
    if num * width > _MAX_SYMBOLS:
        raise DataError(f"The header of {path} states {num * width:,} values, which is too many.")
    symbols = decode(payload, chain.from_iterable(repeat(tables, num)))
    return np.fromiter(symbols, np.int64, num * width).reshape(num, width)


def _carry(output: bytearray) -> None:
    """Add one to the last byte and propagate the carry."""
    position = len(output) - 1
    while output[position] == 255:
        output[position] = 0
        position -= 1
    output[position] += 1
