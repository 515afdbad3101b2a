"""Token ids of many texts in one flat array or file."""

import os
import weakref
from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.signedinteger[Any]]
"""Number of positions of each item."""


class FlatFile:
    """Token ids in a file, of which slices are read like those of an array.

    Unlike pages of a memory-mapped file, of which the system maps up to two MiB for each access,
    they do not add to the resident memory of the process.
    """

    def __init__(self, path: Path, dtype: "np.dtype[Any]") -> None:
        """Open a file of numbers of one type."""
        self.dtype = dtype
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self._length = path.stat().st_size // dtype.itemsize

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, end, _ = rows.indices(self._length)
        size = self.dtype.itemsize
        return np.frombuffer(os.pread(self._file, (end - start) * size, start * size), self.dtype)


Flat = NDArray[Any] | FlatFile
"""Token ids in one array or file."""


def open_flat(path: Path, dtype: "np.dtype[Any]") -> Flat:
    """Open the token ids of a file."""
    if hasattr(os, "pread"):
        return FlatFile(path, dtype)
    # As a plain array: indexing a `numpy.memmap` is several times slower.
    return np.asarray(np.memmap(path, dtype, mode="r"))


def shorten_ids(ids: list[int], limit: int) -> list[int]:
    """Truncate token ids to a length; they keep their last token, the end token."""
    return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]


Shorten = Callable[[list[int], int], list[int]]
"""Function that truncates token ids to a length."""


class TokenIds(Sequence[list[int]]):
    """Token ids of texts, stored one after the other in a flat array or file."""

    def __init__(
        self,
        flat: Flat,
        starts: NDArray[Any],
        lengths: Lengths,
        *,
        limit: int | None = None,
        shorten: Shorten = shorten_ids,
    ) -> None:
        """Combine arrays without copying them.

        Args:
            flat: Token ids of all texts.
            starts: Index of the first token of each text.
            lengths: Number of tokens of each text.
            limit: Length to which longer texts are truncated.
            shorten: Function that truncates a text.
        """
        self.flat, self._starts = flat, starts
        self._lengths, self._limit, self._shorten = lengths, limit, shorten

    @property
    def lengths(self) -> Lengths:
        """Number of tokens of each text."""
        if self._limit is None or self._limit > np.iinfo(self._lengths.dtype).max:
            return self._lengths
        return np.minimum(self._lengths, self._limit)

    @property
    def first(self) -> NDArray[Any]:
        """First token of each text; every text must have one."""
        first: NDArray[Any] = self.flat[:][self._starts]
        return first

    def select(self, rows: NDArray[np.int64]) -> "TokenIds":
        """Return the texts with the given indexes; token ids are not copied."""
        starts, lengths = self._starts[rows], self._lengths[rows]
        return TokenIds(self.flat, starts, lengths, limit=self._limit, shorten=self._shorten)

    def truncate(self, limit: int, shorten: Shorten = shorten_ids) -> "TokenIds":
        """Return the texts truncated to a length."""
        return TokenIds(self.flat, self._starts, self._lengths, limit=limit, shorten=shorten)

    def __len__(self) -> int:
        return len(self._lengths)

    @overload
    def __getitem__(self, index: int) -> list[int]: ...

    @overload
    def __getitem__(self, index: slice) -> list[list[int]]: ...

    def __getitem__(self, index: int | slice) -> list[int] | list[list[int]]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        start = int(self._starts[index])
        ids: list[int] = self.flat[start : start + int(self._lengths[index])].tolist()
        return ids if self._limit is None else self._shorten(ids, self._limit)


def lengths_of(items: Sequence[Sized]) -> Lengths:
    """Return the number of positions of each item."""
    return items.lengths if isinstance(items, TokenIds) else np.array([*map(len, items)])


def select(items: Sequence[Any], rows: NDArray[np.int64]) -> Sequence[Any]:
    """Return the items with the given indexes."""
    if isinstance(items, TokenIds):
        return items.select(rows)
    return [items[row] for row in rows.tolist()]


def truncate(
    sequences: Sequence[list[int]], limit: int, shorten: Shorten = shorten_ids
) -> Sequence[list[int]]:
    """Return token ids truncated to a length.

    Args:
        sequences: Token ids of each text.
        limit: The length.
        shorten: Function that truncates a text; by default, it keeps its last token, the end token.
    """
    if isinstance(sequences, TokenIds):
        return sequences.truncate(limit, shorten)
    return [shorten(ids, limit) for ids in sequences]


def first_ids(sequences: Sequence[list[int]]) -> Sequence[int]:
    """Return the first token id of each sequence, such as the number of its only token, a label."""
    if isinstance(sequences, TokenIds):
        return sequences.first.data  # Unlike those of an array, its items are `int`.
    return [ids[0] for ids in sequences]
