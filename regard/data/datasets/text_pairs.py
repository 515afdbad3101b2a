"""Translations (Tatoeba, Multi30k, English with Japanese) and summaries (synopsis, SciTLDR)."""

import os
import re
import tempfile
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.download import cache_folder, fetch, local_folder
from regard.data.datasets.loading import Parts, check_argument, find_folder, with_sizes
from regard.data.example import Example
from regard.data.splits import Splits, drop_overlap, split_by_source
from regard.data.text.lines import read_lines
from regard.data.text.readers import read_examples

MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
TATOEBA_URL = "https://www.manythings.org/anki/"

MULTI30K_PARTS = ("train", "val", "test_2016_flickr")
OVERLAP = "multi30k_overlap.tsv"
"""In the folder of Flickr8k: a part of Multi30k, a line of it from 0 on, and its photo."""
NUM_VALID, NUM_TEST = 500, 1_000
"""Held-out pairs with photos at the least, so that small differences are significant; the official
parts have a quarter of that."""

SUMMARIES = {
    "synopsis": ("train.tsv.gz", "valid.tsv.gz", "test.tsv.gz"),
    "scitldr": ("train.jsonl.gz", "dev.jsonl.gz", "test.jsonl.gz"),
}
"""The files of the official parts."""

Seen = tuple[str, Example]
"""A photo, and the pair that describes it."""


def load_tatoeba(argument: str, seed: int) -> Splits:
    """Return English sentences with those of another language, split by the English side."""
    code = argument or "deu"
    if not re.fullmatch("[a-z]{2,3}", code):
        raise DataError(
            f"What follows 'tatoeba:' must be a language code such as 'deu', but is '{code}'."
        )
    local = sorted(local_folder("tatoeba").glob(f"{code}-eng*.tsv.gz"))
    if local:
        origin, examples = str(local[-1]), read_examples(local[-1])
    else:
        base = os.environ.get("REGARD_TATOEBA_URL", TATOEBA_URL).rstrip("/")
        origin = f"{base}/{code}-eng.zip"
        archive = fetch(origin, cache=cache_folder() / "tatoeba")
        examples = _read_zipped(archive, f"{code}.txt")
    splits = split_by_source(examples, seed=seed)
    return replace(splits, note=f"{origin}, seed {seed}, {splits.note}")


def _read_zipped(archive: Path, member: str) -> list[Example]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(archive) as opened:
                extracted = opened.extract(member, folder)
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataError(
                f"{archive} cannot be unpacked ({error}). Delete it to download it again."
            ) from None
        return read_examples(extracted)


def load_multi30k(argument: str, seed: int) -> Splits:
    """Return English image descriptions with German ones in their official split.

    Args:
        argument: Nothing; `images` for those whose image is in Flickr8k, with it; or `images-text`
            for the same without it.
        seed: Not used.
    """
    check_argument(argument, "multi30k", "images", "images-text")
    folder = local_folder("multi30k")
    origin = str(folder)
    if not (folder / "train.en.gz").is_file():
        origin, folder = MULTI30K_URL, cache_folder() / "multi30k"
        for part in MULTI30K_PARTS:
            for language in ("en", "de"):
                fetch(f"{MULTI30K_URL}{part}.{language}.gz", cache=folder)
    parts = _read_sides(folder, MULTI30K_PARTS, "de")
    if argument:
        return _with_photos(parts, has_images=argument == "images")
    return with_sizes(parts, f"official split of {origin}, test_2016_flickr")


def _with_photos(parts: Parts, *, has_images: bool) -> Splits:
    """Return the pairs of Multi30k whose photo is in Flickr8k, with it or without it.

    Both ways have the same pairs in the same order in each part. A held-out part has its official
    pairs first. What it lacks comes from the training part, by the photo's name, so that no seed
    moves it; every photo has one pair only, so none is in two parts.
    """
    train, valid, test = _find_photos(parts)
    official = f"{len(valid):,} and {len(test):,} of them official"
    # An arbitrary order that depends on the photo alone.
    train.sort(key=lambda seen: zlib.crc32(seen[0].encode()))
    num_test, num_valid = max(0, NUM_TEST - len(test)), max(0, NUM_VALID - len(valid))
    test += train[:num_test]
    valid += train[num_test : num_test + num_valid]
    held_out = {example.source for _, example in (*valid, *test)}
    rest = [seen for seen in train[num_test + num_valid :] if seen[1].source not in held_out]
    found = (
        [
            replace(example, source=(example.source, photo)) if has_images else example
            for photo, example in part
        ]
        for part in (rest, valid, test)
    )
    note = f"Multi30k with photos in Flickr8k, validation and test filled up by photo, {official}"
    return with_sizes(found, note)


def _find_photos(parts: Parts) -> list[list[Seen]]:
    folder = find_folder("flickr8k", OVERLAP)
    find_folder("flickr8k", "images_96.zip")
    by_name = dict(zip(MULTI30K_PARTS, parts, strict=True))
    found: dict[str, list[Seen]] = {name: [] for name in MULTI30K_PARTS}
    for number, line in enumerate(read_lines(folder / OVERLAP), start=1):
        try:
            name, row, photo = line.split("\t")
            example = by_name[name][int(row)]
        except (KeyError, IndexError, ValueError):
            raise DataError(
                f"{folder / OVERLAP}, line {number:,}, must have a part of Multi30k, a line of it "
                f"and a photo, parted by tabs, but is '{line[:80]}'."
            ) from None
        found[name].append((f"{folder}/images_96.zip/{photo}", example))
    return list(found.values())


def load_small_enja(argument: str, seed: int) -> Splits:
    """Return English sentences with Japanese ones, the small Tanaka corpus in its official split.

    The file separates Japanese words by spaces, which no Japanese text has: they are left out,
    unless the argument is `tokenised`.
    """
    check_argument(argument, "small_enja", "tokenised")
    folder = find_folder("small_enja", "train.en.gz")
    parts = _read_sides(folder, ("train", "dev", "test"), "ja")
    origin = f"official split of {folder}, Japanese "
    if argument:
        return with_sizes(parts, origin + "tokenised")
    joined = (
        [replace(example, target="".join(example.target.split())) for example in part]
        for part in parts
    )
    return with_sizes(joined, origin + "without blanks")


def load_summaries(name: str, argument: str, seed: int) -> Splits:
    """Return longer texts with their summaries: `synopsis`, `scitldr` (Cachola et al. 2020)."""
    check_argument(argument, name)
    folder = find_folder(name, SUMMARIES[name][0])
    train, valid, test = (read_examples(folder / file) for file in SUMMARIES[name])
    _, num_shared = drop_overlap(train, [*valid, *test])
    shared = f"{num_shared:,} training pairs have" if num_shared else "no training pair has"
    note = f"; {shared} a source that is held out, too"
    return with_sizes((train, valid, test), f"official split of {folder}", note)


def _read_sides(folder: Path, names: tuple[str, str, str], language: str) -> Parts:
    train, valid, test = (
        read_examples(folder / f"{name}.en.gz", folder / f"{name}.{language}.gz") for name in names
    )
    return train, valid, test
