"""Training, validation and test sets that share no source sentence."""

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
"""Distinct sources below which a held-out set says nothing."""

MAX_SHARE = 0.4
"""Held out for one purpose at most, so that something remains to learn from."""


@dataclass(frozen=True)
class Splits:
    """What is learned from, what is watched while learning, and what is measured at the end."""

    train: list[Example]
    valid: list[Example]
    test: list[Example]
    note: str
    """How it was split and from where, in one line."""

    def map(self, change: Callable[[list[Example]], list[Example]]) -> "Splits":
        """Return the splits with every side changed."""
        return Splits(change(self.train), change(self.valid), change(self.test), self.note)


def split_by_source(
    examples: Sequence[Example],
    *,
    seed: int = 0,
    valid_share: float = 0.05,
    test_share: float = 0.05,
    most: int = 1000,
) -> Splits:
    """Split examples so that all with the same source land on the same side.

    Sources are the same if they differ only in case, blanks or Unicode form. The side hangs on a
    hash of source and seed, not on the order of the examples. What is held out also comes in the
    order of these hashes, since many files are sorted by length and their first lines tell little.

    Args:
        examples: Any examples, in any order.
        seed: Another seed is another split.
        valid_share: Share of the examples held out for validation.
        test_share: Share of the examples held out for the test.
        most: Number of examples held out at most, for each of both.
    """
    within("valid_share", valid_share, low=0.0, high=MAX_SHARE)
    within("test_share", test_share, low=0.0, high=MAX_SHARE)
    at_least("most", most, 1)
    sources = [_plain(example.source) for example in examples]
    sizes = Counter(sources)
    if len(sizes) < MIN_SOURCES:
        raise DataError(
            f"A split needs at least {MIN_SOURCES} distinct source sentences, "
            f"but there are {len(sizes)}. Give more data, or validation and test files."
        )
    waiting = {source: sizes[source] for source in sorted(sizes, key=lambda s: hash_text(s, seed))}
    in_test = _take(waiting, min(most, round(test_share * len(examples))))
    in_valid = _take(waiting, min(most, round(valid_share * len(examples))))
    pairs = list(zip(sources, examples, strict=True))
    train = [example for source, example in pairs if source in waiting]
    valid = _pick(pairs, in_valid)
    test = _pick(pairs, in_test)
    note = (
        f"split by source side: {len(train):,} train, {len(valid):,} valid, {len(test):,} test; "
        "no source sentence is shared"
    )
    return Splits(train, valid, test, note)


def drop_overlap(
    train: Iterable[Example], held_out: Iterable[Example]
) -> tuple[list[Example], int]:
    """Drop the training examples whose source is also held out.

    Returns:
        The training examples that remain, and how many were dropped.
    """
    forbidden = {_plain(example.source) for example in held_out}
    train = list(train)
    kept = [example for example in train if _plain(example.source) not in forbidden]
    return kept, len(train) - len(kept)


def merge_references(examples: Iterable[Example]) -> list[Example]:
    """Make one example of all that have the same source, with every distinct target as reference.

    The first of them gives the target, the alignment and the tags, and its place in the order.
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
    """Make an example of every target and reference, so that all are learned from.

    An alignment stays with the target that it belongs to.
    """
    expanded: list[Example] = []
    for example in examples:
        expanded.append(replace(example, references=()))
        expanded += [
            replace(example, target=reference, references=(), alignment=None)
            for reference in example.references
        ]
    return expanded


def _plain(source: str | tuple[str, ...]) -> str:
    if not isinstance(source, str):
        return "\t".join(map(_plain, source))
    return " ".join(unicodedata.normalize("NFC", source).casefold().split())


def hash_text(source: str, seed: int) -> bytes:
    """Return what decides to which side a text goes, and in what order it comes."""
    return hashlib.blake2b(f"{seed} {source}".encode(), digest_size=8).digest()


def _pick(pairs: Sequence[tuple[str, Example]], sources: Sequence[str]) -> list[Example]:
    """Return the examples of some sources, in the order of these."""
    places = {source: place for place, source in enumerate(sources)}
    found = [(places[source], example) for source, example in pairs if source in places]
    return [example for _, example in sorted(found, key=lambda pair: pair[0])]


def _take(waiting: dict[str, int], num: int) -> list[str]:
    """Move sources out of `waiting` until they have `num` examples; one source at the least."""
    taken: list[str] = []
    left = num
    for source, size in list(waiting.items()):
        if left <= 0:
            break
        if size <= left:
            taken.append(source)
            left -= size
    if not taken:
        # Every group is larger than what was asked for: the smallest comes nearest.
        taken.append(min(waiting, key=lambda source: waiting[source]))
    for source in taken:
        del waiting[source]
    return taken
