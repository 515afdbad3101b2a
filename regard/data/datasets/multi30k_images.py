"""Multi30k with its photos: English and German sentences whose image is one of Flickr8k."""

import zlib
from dataclasses import replace
from typing import NamedTuple

from regard.core.errors import DataError
from regard.data.datasets.loading import find_folder, with_sizes
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.lines import read_lines

OVERLAP = "multi30k_overlap.tsv"
"""In the folder of Flickr8k: a part of Multi30k, a line of it from 0 on, and its photo."""
SIDES = ("train", "val", "test_2016_flickr")
NUM_VALID, NUM_TEST = 500, 1_000
"""Held out at the least, so that small differences can be told from chance; the official sides
have a quarter of that."""


class _Seen(NamedTuple):
    photo: str
    example: Example


def load_seen_multi30k(whole: Splits, *, has_images: bool) -> Splits:
    """Return the sentences of Multi30k whose photo is in Flickr8k, with it or without it.

    Both ways have the same sentences in the same order on each side. A held-out side has its
    official sentences first. What it lacks comes from the training side, by the photo's name, so
    that no seed moves it; every photo has one sentence only, so none is on two sides.

    Args:
        whole: All of Multi30k.
        has_images: Whether a source is a sentence with its photo, or the sentence alone.
    """
    train, valid, test = _find_seen(whole)
    official = f"{len(valid):,} and {len(test):,} of them official"
    # An order by chance that hangs on the photo alone.
    train.sort(key=lambda seen: zlib.crc32(seen.photo.encode()))
    num_test, num_valid = max(0, NUM_TEST - len(test)), max(0, NUM_VALID - len(valid))
    test += train[:num_test]
    valid += train[num_test : num_test + num_valid]
    held_out = {seen.example.source for seen in (*valid, *test)}
    rest = [seen for seen in train[num_test + num_valid :] if seen.example.source not in held_out]
    parts = tuple(
        [_with_photo(seen) if has_images else seen.example for seen in side]
        for side in (rest, valid, test)
    )
    note = f"Multi30k with photos in Flickr8k, validation and test filled up by photo, {official}"
    return with_sizes((parts[0], parts[1], parts[2]), note)


def _find_seen(whole: Splits) -> tuple[list[_Seen], list[_Seen], list[_Seen]]:
    folder = find_folder("flickr8k", OVERLAP)
    find_folder("flickr8k", "images_96.zip")
    sides = dict(zip(SIDES, (whole.train, whole.valid, whole.test), strict=True))
    found: dict[str, list[_Seen]] = {side: [] for side in SIDES}
    for number, line in enumerate(read_lines(folder / OVERLAP), start=1):
        try:
            side, place, photo = line.split("\t")
            example = sides[side][int(place)]
        except (KeyError, IndexError, ValueError):
            raise DataError(
                f"{folder / OVERLAP}, line {number:,}, must have a part of Multi30k, a line of it "
                f"and a photo, parted by tabs, but is '{line[:80]}'."
            ) from None
        found[side].append(_Seen(f"{folder}/images_96.zip/{photo}", example))
    train, valid, test = found.values()
    return train, valid, test


def _with_photo(seen: _Seen) -> Example:
    return replace(seen.example, source=(seen.example.source, seen.photo))
