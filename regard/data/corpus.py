"""Examples of files that are too large for memory, kept in a cache on disk."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from regard.core.cached_folder import CachedFolder, cache_folder, find_or_build
from regard.core.logging import logger
from regard.core.progress import track
from regard.data.example import Example

Array = NDArray[Any]
Rows = NDArray[np.int64]

MAX_FITTED = 500_000
"""Maximum number of examples of a corpus to which vocabularies are fitted."""

# Without the checks and options of `json.dumps` and `json.loads`, which take most of their time.
_encode = json.JSONEncoder(ensure_ascii=False).encode
_decode = json.JSONDecoder().raw_decode

_EXAMPLES, _OFFSETS, _VALUES = "examples.jsonl", "offsets.npy", "values.npy"


def corpora_folder() -> Path:
    """Return the folder of examples and token ids of large files in the cache."""
    return cache_folder() / "corpora"


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(Sequence[Example]):
    """Examples in a file on disk, each built when it is accessed.

    Iteration reads the file in blocks; access by index maps it into memory. Examples can be left
    out and added without a copy of the file.
    """

    folder: CachedFolder
    """Folder of the file in the cache."""
    offsets: Array
    """Byte at which each example of the file starts, and the size of the file."""
    removed: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rows of the file that are left out, in ascending order."""
    added: tuple[Example, ...] = ()
    """Examples after those of the file."""

    @classmethod
    def open(cls, name: str, read: Callable[[], Iterable[Example]]) -> "Corpus":
        """Open a corpus of the cache; write it first if it is not there.

        Args:
            name: Name that identifies the examples, such as a checksum of the file they are from.
            read: Function that reads the examples.
        """
        folder = find_or_build(corpora_folder() / name, lambda path: _write(path, read()))
        return cls(folder, open_array(folder.path / _OFFSETS))

    @cached_property
    def digest(self) -> str:
        """Checksum of the examples and their order."""
        digest = hashlib.sha256(self.folder.checksums[_EXAMPLES].encode())
        digest.update(self.removed.tobytes())
        digest.update("".join(map(_to_json, self.added)).encode())
        return digest.hexdigest()

    @cached_property
    def targets(self) -> frozenset[str]:
        """All distinct targets, such as labels."""
        tracked = track(self, "Reading labels", total=len(self))
        return frozenset(example.target for example in tracked)

    def without(self, rows: Rows) -> "Corpus":
        """Return the corpus without the examples of some indexes."""
        removed = np.union1d(self.removed, self._stored_row(rows[rows < self._num_stored]))
        left_out = {*(rows - self._num_stored).tolist()}
        added = tuple(one for row, one in enumerate(self.added) if row not in left_out)
        return replace(self, removed=removed, added=added)

    def __add__(self, examples: Iterable[Example]) -> "Corpus":
        return replace(self, added=(*self.added, *examples))

    def sample(self, num: int) -> list[Example]:
        """Return at most `num` examples at equal distances."""
        step = -(-len(self) // num)
        return [parse_line(line) for line in islice(self.lines(), 0, None, step)]

    def array(self, name: str, compute: Callable[[Sequence[Example]], Array]) -> Array:
        """Return one value per example, computed once and kept in the cache.

        Args:
            name: Name of the values in the cache.
            compute: Function that returns the values of examples.
        """
        stored = Corpus(self.folder, self.offsets)
        folder = find_or_build(
            corpora_folder() / f"{stored.digest[:16]}-{name}",
            lambda path: np.save(path / _VALUES, compute(stored)),
        )
        values = open_array(folder.path / _VALUES)
        values = np.delete(values, self.removed) if len(self.removed) else values
        return np.concatenate([values, compute(self.added)]) if self.added else values

    @property
    def _num_stored(self) -> int:
        return len(self.offsets) - 1 - len(self.removed)

    def __len__(self) -> int:
        return self._num_stored + len(self.added)

    def __iter__(self) -> Iterator[Example]:
        return map(parse_line, self.lines())

    def lines(self) -> Iterator[str]:
        """Yield each example as `parse_line` reads it."""
        with self._path.open(encoding="utf-8", newline="\n") as file:
            row = 0
            for removed in self.removed.tolist():
                yield from islice(file, removed - row)
                next(file)
                row = removed + 1
            yield from file
        yield from map(_to_json, self.added)

    @overload
    def __getitem__(self, index: int) -> Example: ...

    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...

    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        if row >= self._num_stored:
            return self.added[row - self._num_stored]
        stored = int(self._stored_row(np.array(row)))
        start, end = self.offsets[stored : stored + 2].tolist()
        return parse_line(self._bytes[start:end].tobytes().decode())

    @property
    def _path(self) -> Path:
        return self.folder.path / _EXAMPLES

    @cached_property
    def _bytes(self) -> Array:
        return np.asarray(np.memmap(self._path, mode="r"))

    def _stored_row(self, rows: Rows) -> Rows:
        """Return the rows in the file of examples that are not added ones."""
        # Number of remaining examples before each removed one.
        remaining = self.removed - np.arange(len(self.removed))
        return rows + np.searchsorted(remaining, rows, side="right")


def sample(examples: Sequence[Example], num: int, purpose: str = "") -> Sequence[Example]:
    """Return at most `num` examples of a corpus, at equal distances; a list unchanged.

    Args:
        examples: The examples.
        num: Maximum number of examples of a corpus.
        purpose: Purpose in a log line, such as `The tokenizers are fitted`; if empty, nothing is
            logged.
    """
    if not isinstance(examples, Corpus) or len(examples) <= num:
        return examples
    sampled = examples.sample(num)
    if purpose:
        logger.info("%s to %s of %s examples.", purpose, f"{len(sampled):,}", f"{len(examples):,}")
    return sampled


def distinct_targets(examples: Sequence[Example]) -> frozenset[str]:
    """Return all distinct targets of examples, such as labels."""
    if isinstance(examples, Corpus):
        return examples.targets
    return frozenset(example.target for example in examples)


def without_rows(examples: Sequence[Example], rows: Rows) -> Sequence[Example]:
    """Return the examples without those of some indexes, in ascending order."""
    if isinstance(examples, Corpus):
        return examples.without(rows)
    removed = {*rows.tolist()}
    return [example for row, example in enumerate(examples) if row not in removed]


def join(examples: Sequence[Example], others: list[Example]) -> Sequence[Example]:
    """Return the examples followed by others."""
    return examples + others if isinstance(examples, Corpus) else [*examples, *others]


def open_array(path: Path) -> Array:
    """Map the array of a file into memory."""
    # A view as a plain array: indexing a `numpy.memmap` is several times slower.
    return np.asarray(np.load(path, mmap_mode="r"))


def _write(folder: Path, examples: Iterable[Example]) -> None:
    """Write examples as JSON lines, and the byte at which each of them starts."""
    sizes: list[Array] = []
    remaining = iter(examples)
    with (folder / _EXAMPLES).open("wb") as file:
        while lines := [_to_json(one).encode() for one in islice(remaining, 10_000)]:
            file.write(b"".join(lines))
            sizes.append(np.fromiter(map(len, lines), np.uint32, len(lines)))
    np.save(folder / _OFFSETS, to_offsets(sizes))


def to_offsets(sizes: Sequence[Array]) -> Array:
    """Return the start of each item and the end of the last one, in the smallest integer type.

    Args:
        sizes: Sizes of items that are stored one after the other, in one or several arrays.
    """
    ends = np.cumsum(np.concatenate(sizes), dtype=np.int64)
    return np.concatenate([[0], ends]).astype(np.min_scalar_type(int(ends[-1])))


def _to_json(example: Example) -> str:
    """Return an example as a line: source and target, and further fields if there are any."""
    fields: tuple[Any, ...] = (example.source, example.target)
    if example.references or example.alignment is not None or example.tags:
        fields = (*fields, example.references, example.alignment, example.tags)
    return _encode(fields) + "\n"


def parse_line(line: str) -> Example:
    """Return the example of a line of `Corpus.lines`."""
    (source, target, *others), _ = _decode(line)
    source = tuple(source) if isinstance(source, list) else source
    if not others:
        return Example(source, target)
    references, alignment, tags = others
    links = None if alignment is None else tuple((one, other) for one, other in alignment)
    return Example(source, target, tuple(references), links, tuple(tags))
