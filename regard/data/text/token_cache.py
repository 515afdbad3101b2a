"""Token ids of corpora, tokenised once and kept in a cache on disk."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from regard.core.cached_folder import find_or_build
from regard.core.progress import counting
from regard.core.workers import count_workers, map_chunks
from regard.data.corpus import Array, Corpus, corpora_folder, open_array, parse_line, to_offsets
from regard.data.example import Example
from regard.data.labels import LabelField
from regard.data.text.field import TextField
from regard.data.text.tokenizers import CHUNK
from regard.data.text.windows import StreamField
from regard.data.token_ids import Flat, TokenIds, open_flat

NUM_PER_WORKER = 250_000
"""Minimum number of examples per worker process; a process takes some seconds to start."""

_FORMAT = 1
"""Version of the token ids in the cache; another number invalidates them."""


class Encoder(Protocol):
    """Field that encodes raw items."""

    def read_all(self, raws: Sequence[Any], /) -> list[Any]:
        """Convert raw items to items whose length is the number of positions they take."""


class TokenField(Encoder, Protocol):
    """Field that encodes raw items as token ids."""

    @property
    def digest(self) -> str:
        """Checksum of the encoding; fields with the same one encode every item equally."""

    @property
    def size(self) -> int:
        """Number of different token ids."""


@dataclass(frozen=True)
class ParsedField:
    """Field of texts whose raw items are parsed first."""

    field: TextField
    parse: Callable[[Any], Any]
    """Function of the module level; it is pickled for worker processes."""

    def read_all(self, raws: Sequence[Any]) -> list[list[int]]:
        """Encode many raw items as token ids."""
        return self.field.read_all([*map(self.parse, raws)])

    @property
    def digest(self) -> str:
        """Checksum of the encoding."""
        return f"{self.parse.__module__}.{self.parse.__qualname__} {self.field.digest}"

    @property
    def size(self) -> int:
        """Vocabulary size."""
        return self.field.size


@dataclass(frozen=True)
class Column:
    """One part of each example, and the field that encodes it."""

    name: str
    """Attribute of examples."""
    field: TokenField
    """The field."""
    start: tuple[int, ...] = ()
    """Token ids before those of the first example."""

    def encode(self, examples: Sequence[Example]) -> tuple[Array, Array]:
        """Return the token ids of examples in one array, and their number per example."""
        rows = self.field.read_all([getattr(example, self.name) for example in examples])
        sizes = np.fromiter(map(len, rows), np.uint32, len(rows))
        return np.fromiter(chain.from_iterable(rows), self.dtype, int(sizes.sum())), sizes

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Smallest type of the token ids."""
        return np.min_scalar_type(self.field.size - 1)


def encode_pairs(
    examples: Sequence[Example], *, source: Encoder, target: TextField
) -> tuple[Sequence[Any], Sequence[list[int]]]:
    """Return the items of sources and targets; those of a corpus of texts are read from the cache.

    Args:
        examples: The examples.
        source: Field of the sources, of any modality.
        target: Field of the targets.
    """
    if isinstance(examples, Corpus) and isinstance(source, TextField):
        sources, targets = read_tokens(examples, Column("source", source), Column("target", target))
        return sources, targets
    return (
        source.read_all([example.source for example in examples]),
        target.read_all([example.target for example in examples]),
    )


def encode_labelled(
    examples: Sequence[Example],
    *,
    source: Encoder,
    labels: LabelField,
    parse: Callable[[Any], Any],
) -> tuple[Sequence[Any], Sequence[list[int]]]:
    """Return the items of sources, and labels as one token each, likewise.

    Args:
        examples: The examples.
        source: Field of the sources, of any modality.
        labels: Field of the labels.
        parse: Function that converts the source of an example to a raw item.
    """
    if isinstance(examples, Corpus) and isinstance(source, TextField):
        parsed = ParsedField(source, parse)
        items, targets = read_tokens(examples, Column("source", parsed), Column("target", labels))
        return items, targets
    return (
        source.read_all([parse(example.source) for example in examples]),
        labels.read_all([example.target for example in examples]),
    )


def encode_stream(examples: Sequence[Example], text: StreamField) -> Flat:
    """Return all texts as one array of ids, as `StreamField.stream` does, likewise.

    Args:
        examples: Texts as sources.
        text: Field of the texts.
    """
    if isinstance(examples, Corpus):
        (tokens,) = read_tokens(examples, Column("source", text, start=(text.line_end,)))
        return tokens.flat
    return text.stream([example.source for example in examples])


def read_tokens(corpus: Corpus, *columns: Column) -> tuple[TokenIds, ...]:
    """Return the token ids of a corpus; tokenise it if they are not in the cache.

    Args:
        corpus: The examples.
        columns: Parts of the examples with their fields.

    Returns:
        Token ids of each part, as `read_all` of its field returns them.
    """
    key = " ".join([f"{_FORMAT}", corpus.digest, *(column.field.digest for column in columns)])
    name = f"{hashlib.sha256(key.encode()).hexdigest()[:16]}-tokens"

    def build(folder: Path) -> None:
        _tokenize(corpus, [_Files(folder, column) for column in columns])

    folder = find_or_build(corpora_folder() / name, build).path
    return tuple(_Files(folder, column).open() for column in columns)


def _tokenize(corpus: Corpus, files: "Sequence[_Files]") -> None:
    """Write the token ids of a corpus, in chunks that worker processes encode."""
    encode = partial(_encode, columns=[one.column for one in files])
    num_workers = count_workers(len(corpus), NUM_PER_WORKER)
    with counting("Tokenising", len(corpus)) as advance:
        for chunk in map_chunks(encode, _split(corpus.lines()), num_workers=num_workers):
            for one, (flat, sizes) in zip(files, chunk, strict=True):
                one.append(flat, sizes)
            advance(len(chunk[0][1]))
    for one in files:
        one.finish()


def _split(lines: Iterator[str]) -> Iterator[list[str]]:
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def _encode(lines: Sequence[str], *, columns: Sequence[Column]) -> list[tuple[Array, Array]]:
    if parent_process() is not None:
        # The worker processes occupy all cores.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    examples = [*map(parse_line, lines)]
    return [column.encode(examples) for column in columns]


@dataclass
class _Files:
    """Files with the token ids of a column: one flat array, and the offsets of its items."""

    folder: Path
    column: Column
    sizes: list[Array] = field(default_factory=list)

    def append(self, flat: Array, sizes: Array) -> None:
        """Write the token ids of further items, one after the other, with their sizes."""
        with self._ids.open("ab") as file:
            if not self.sizes:
                np.array(self.column.start, self.column.dtype).tofile(file)
            flat.tofile(file)
        self.sizes.append(sizes)

    def finish(self) -> None:
        """Write the offsets of all items."""
        start = np.array([len(self.column.start)])
        np.save(self._offsets, to_offsets([start, *self.sizes])[1:])

    def open(self) -> TokenIds:
        """Return the token ids, which are read when they are accessed."""
        offsets = open_array(self._offsets)
        flat = open_flat(self._ids, self.column.dtype)
        lengths = np.diff(offsets)
        # Signed, since lengths are subtracted from each other.
        dtype = np.int16 if lengths.max(initial=0) <= np.iinfo(np.int16).max else np.int32
        return TokenIds(flat, offsets[:-1], lengths.astype(dtype))

    @property
    def _ids(self) -> Path:
        return self.folder / f"{self.column.name}.bin"

    @property
    def _offsets(self) -> Path:
        return self.folder / f"{self.column.name}-offsets.npy"
