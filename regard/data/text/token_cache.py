"""Token ids of corpora, tokenised once and kept in a memory-mapped cache."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from regard.core.progress import counting
from regard.data.cached_folder import find_or_build
from regard.data.corpus import Array, Corpus, corpora_folder, open_array, to_offsets
from regard.data.example import Example
from regard.data.text.field import Text, TextField
from regard.data.text.tokenizers import CHUNK
from regard.data.token_ids import TokenIds


class Encoder(Protocol):
    """Field that encodes raw items."""

    def read_all(self, raws: Sequence[Any], /) -> list[Any]:
        """Convert raw items to items whose length is the number of positions they take."""


_FORMAT = 1
"""Version of the token ids in the cache; another number invalidates them."""


def encode_pairs(
    examples: Sequence[Example], *, source: Encoder, target: TextField
) -> tuple[Sequence[Any], Sequence[list[int]]]:
    """Return the items of sources and targets; those of a corpus of texts are memory-mapped.

    Args:
        examples: The examples.
        source: Field of the sources, of any modality.
        target: Field of the targets.
    """
    if isinstance(examples, Corpus) and isinstance(source, TextField):
        return read_tokens(examples, source=source, target=target)
    sources = source.read_all([example.source for example in examples])
    return sources, target.read_all([example.target for example in examples])


def read_tokens(
    corpus: Corpus, *, source: TextField, target: TextField
) -> tuple[TokenIds, TokenIds]:
    """Return the token ids of a corpus, memory-mapped; tokenise it if they are not in the cache.

    Args:
        corpus: The examples.
        source: Field of the sources.
        target: Field of the targets.

    Returns:
        Token ids of the sources and of the targets, as `TextField.read_all` returns them.
    """
    key = f"{_FORMAT} {corpus.digest} {source.digest} {target.digest}"
    name = f"{hashlib.sha256(key.encode()).hexdigest()[:16]}-tokens"

    def build(folder: Path) -> None:
        _tokenize(corpus, _Side(folder, "source", source), _Side(folder, "target", target))

    folder = find_or_build(corpora_folder() / name, build).path
    return _Side(folder, "source", source).open(), _Side(folder, "target", target).open()


def _tokenize(corpus: Corpus, source: "_Side", target: "_Side") -> None:
    examples = iter(corpus)
    with counting("Tokenising", len(corpus)) as advance:
        while chunk := list(islice(examples, CHUNK)):
            source.append([example.source for example in chunk])
            target.append([example.target for example in chunk])
            advance(len(chunk))
    source.finish()
    target.finish()


@dataclass
class _Side:
    """Files with the token ids of sources or of targets: one flat array, and offsets of texts."""

    folder: Path
    name: str
    text_field: TextField
    sizes: list[Array] = field(default_factory=list)

    def append(self, texts: Sequence[Text]) -> None:
        """Write the token ids of further texts."""
        rows = self.text_field.read_all(texts)
        sizes = np.fromiter(map(len, rows), np.uint32, len(rows))
        flat = np.fromiter(chain.from_iterable(rows), self._dtype, int(sizes.sum()))
        with self._ids.open("ab") as file:
            flat.tofile(file)
        self.sizes.append(sizes)

    def finish(self) -> None:
        """Write the offsets of all texts."""
        np.save(self._offsets, to_offsets(self.sizes))

    def open(self) -> TokenIds:
        """Map the files into memory."""
        offsets = open_array(self._offsets)
        flat = np.memmap(self._ids, self._dtype, mode="r")
        return TokenIds(flat, offsets[:-1], np.diff(offsets).astype(np.int32))

    @property
    def _ids(self) -> Path:
        return self.folder / f"{self.name}.bin"

    @property
    def _offsets(self) -> Path:
        return self.folder / f"{self.name}-offsets.npy"

    @property
    def _dtype(self) -> "np.dtype[Any]":
        return np.min_scalar_type(self.text_field.size - 1)
