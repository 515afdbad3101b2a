"""Training, validation and test sets that share no source."""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.core.config import at_least, within
from regard.core.errors import DataError
from regard.data.example import Example

MIN_SOURCES = 10
"""Minimum number of distinct sources for a split; with fewer, held-out scores are unreliable."""

MAX_SHARE = 0.4
"""Maximum share of each held-out set, so that training data remain."""


@dataclass(frozen=True)
class Splits:
    """Training, validation and test examples."""

    train: list[Example]
    valid: list[Example]
    test: list[Example]
    note: str
    """Origin of the data and method of the split, in one line."""

    def map(self, change: Callable[[list[Example]], list[Example]]) -> "Splits":
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
    sources = [_normalize(example.source) for example in examples]
    sizes = Counter(sources)
    if len(sizes) < MIN_SOURCES:
        raise DataError(
            f"A split needs at least {MIN_SOURCES} distinct sources, "
            f"but there are {len(sizes)}. Give more data, or validation and test files."
        )
    remaining = {s: sizes[s] for s in sorted(sizes, key=lambda source: hash_text(source, seed))}
    in_test = _take(remaining, min(max_examples, round(test_share * len(examples))))
    in_valid = _take(remaining, min(max_examples, round(valid_share * len(examples))))
    pairs = list(zip(sources, examples, strict=True))
    train = [example for source, example in pairs if source in remaining]
    valid = _select(pairs, in_valid)
    test = _select(pairs, in_test)
    note = (
        f"split by source side: {len(train):,} train, {len(valid):,} valid, {len(test):,} test; "
        "no source is shared"
    )
    return Splits(train, valid, test, note)


def drop_overlap(
    train: Iterable[Example], held_out: Iterable[Example]
) -> tuple[list[Example], int]:
    """Drop the training examples whose source is also held out.

    Returns:
        The remaining training examples, and the number of dropped ones.
    """
    held_out_sources = {_normalize(example.source) for example in held_out}
    train = list(train)
    kept = [example for example in train if _normalize(example.source) not in held_out_sources]
    return kept, len(train) - len(kept)


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


def _select(pairs: Sequence[tuple[str, Example]], sources: Sequence[str]) -> list[Example]:
    """Return the examples of some sources, in the order of the sources."""
    ranks = {source: rank for rank, source in enumerate(sources)}
    selected = [(ranks[source], example) for source, example in pairs if source in ranks]
    return [example for _, example in sorted(selected, key=lambda pair: pair[0])]


def _take(remaining: dict[str, int], num: int) -> list[str]:
    """Remove and return sources with `num` examples in all; at least one source."""
    taken: list[str] = []
    left = num
    for source, size in list(remaining.items()):
        if left <= 0:
            break
        if size <= left:
            taken.append(source)
            left -= size
    if not taken:
        # Every source has more than `num` examples: take the one with the fewest.
        taken.append(min(remaining, key=lambda source: remaining[source]))
    for source in taken:
        del remaining[source]
    return taken
