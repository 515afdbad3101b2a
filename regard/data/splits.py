"""Training, validation and test sets that share no source."""

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least, within
from regard.core.errors import DataError
from regard.core.progress import track
from regard.data.corpus import Corpus, without_rows
from regard.data.example import Example

Hashes = NDArray[np.uint64]
Rows = NDArray[np.int64]

MIN_SOURCES = 10
"""Minimum number of distinct sources for a split; with fewer, held-out scores are unreliable."""

MAX_SHARE = 0.4
"""Maximum share of each held-out set, so that training data remain."""


@dataclass(frozen=True)
class Splits:
    """Training, validation and test examples."""

    train: Sequence[Example]
    """A list, or the corpus of a large file."""
    valid: list[Example]
    test: list[Example]
    note: str
    """Origin of the data and method of the split, in one line."""

    def map(self, change: Callable[[Sequence[Example]], list[Example]]) -> "Splits":
        """Return the splits with `change` applied to each part."""
        return Splits(change(self.train), change(self.valid), change(self.test), self.note)


def split_by_source(
    examples: Sequence[Example],
    *,
    seed: int = 0,
    valid_share: float = 0.05,
    test_share: float = 0.05,
    max_examples: int = 1000,
) -> Splits:
    """Split examples so that all with the same source are in the same part.

    Sources are the same if they differ only in case, whitespace or Unicode form. The part depends
    on a hash of source and seed, not on the order of the examples. Held-out examples are in the
    order of these hashes: many files are sorted by length, so their first lines are not
    representative.

    Args:
        examples: Examples in any order.
        seed: Seed of the hash.
        valid_share: Share of the examples held out for validation.
        test_share: Share of the examples held out for the test.
        max_examples: Maximum number of examples in each held-out set.
    """
    within("valid_share", valid_share, low=0.0, high=MAX_SHARE)
    within("test_share", test_share, low=0.0, high=MAX_SHARE)
    at_least("max_examples", max_examples, 1)
    hashes = hash_sources(examples, seed)
    sources, sizes = np.unique(hashes, return_counts=True)
    if len(sources) < MIN_SOURCES:
        raise DataError(
            f"A split needs at least {MIN_SOURCES} distinct sources, "
            f"but there are {len(sources)}. Give more data, or validation and test files."
        )
    in_test = _take(sizes, min(max_examples, round(test_share * len(examples))))
    in_valid = _take(sizes, min(max_examples, round(valid_share * len(examples))))
    test_rows, valid_rows = (
        _find_rows(hashes, sources[in_test]),
        _find_rows(hashes, sources[in_valid]),
    )
    train = without_rows(examples, np.union1d(test_rows, valid_rows))
    valid = [examples[row] for row in valid_rows.tolist()]
    test = [examples[row] for row in test_rows.tolist()]
    note = (
        f"split by source side: {len(train):,} train, {len(valid):,} valid, {len(test):,} test; "
        "no source is shared"
    )
    return Splits(train, valid, test, note)


def drop_overlap(
    train: Sequence[Example], held_out: Sequence[Example], *, seed: int = 0
) -> tuple[Sequence[Example], int]:
    """Drop the training examples whose source is also held out.

    Args:
        train: Training examples.
        held_out: Validation and test examples.
        seed: Seed of the split; the hashes of a corpus are computed once for each seed.

    Returns:
        The remaining training examples, and the number of dropped ones.
    """
    held_out_sources = np.unique(hash_sources(held_out, seed))
    rows = np.sort(_find_rows(hash_sources(train, seed), held_out_sources))
    return without_rows(train, rows), len(rows)


def merge_references(examples: Iterable[Example]) -> list[Example]:
    """Merge examples of the same source into one, with all distinct targets as references.

    Target, alignment, tags and position in the order are those of the first example.
    """
    groups: dict[Any, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.source, []).append(example)
    merged: list[Example] = []
    for group in groups.values():
        _, *others = dict.fromkeys(text for e in group for text in (e.target, *e.references))
        merged.append(replace(group[0], references=tuple(others)))
    return merged


def expand_references(examples: Iterable[Example]) -> list[Example]:
    """Return one example for every target and reference, so that all are trained on.

    An alignment is kept only by the example of its target.
    """
    expanded: list[Example] = []
    for example in examples:
        expanded.append(replace(example, references=()))
        expanded += [
            replace(example, target=reference, references=(), alignment=None)
            for reference in example.references
        ]
    return expanded


def _normalize(source: str | tuple[str, ...]) -> str:
    if not isinstance(source, str):
        return "\t".join(map(_normalize, source))
    return " ".join(unicodedata.normalize("NFC", source).casefold().split())


def hash_text(source: str, seed: int) -> bytes:
    """Return the hash of a text, which determines its part and its position in the order."""
    return hashlib.blake2b(f"{seed} {source}".encode(), digest_size=8).digest()


def hash_sources(examples: Sequence[Example], seed: int) -> Hashes:
    """Return the hash of each source; sources that count as the same have the same hash."""
    if isinstance(examples, Corpus):
        return examples.array(f"source-hashes-{seed}", partial(_hash_all, seed=seed))
    return _hash_all(examples, seed=seed)


def _hash_all(examples: Sequence[Example], *, seed: int) -> Hashes:
    hashes = (
        int.from_bytes(hash_text(_normalize(example.source), seed))
        for example in track(examples, "Hashing sources", total=len(examples))
    )
    return np.fromiter(hashes, np.uint64, len(examples))


def _find_rows(hashes: Hashes, sources: Hashes) -> Rows:
    """Return the rows whose hash is one of some sources, in the order of the sources.

    Args:
        hashes: Hash of each example.
        sources: Hashes of the sources, in ascending order.
    """
    if not len(sources):
        return np.zeros(0, np.int64)
    ranks = np.searchsorted(sources, hashes).clip(max=len(sources) - 1)
    rows = np.flatnonzero(sources[ranks] == hashes)
    return rows[np.argsort(ranks[rows], kind="stable")]


def _take(sizes: Rows, num: int) -> list[int]:
    """Take sources with `num` examples in all, and at least one source; set their sizes to 0.

    Args:
        sizes: Number of examples of each source; 0 if the source was taken before.
        num: Number of examples.

    Returns:
        Indexes of the sources.
    """
    taken: list[int] = []
    left = num
    for index, size in enumerate(sizes):
        if left <= 0:
            break
        if 0 < size <= left:
            taken.append(index)
            left -= int(size)
    if not taken:
        # Every source has more than `num` examples: take the one with the fewest.
        taken.append(int(np.where(sizes > 0, sizes, sizes.max() + 1).argmin()))
    sizes[taken] = 0
    return taken
