"""Translations (Tatoeba, Multi30k, English–Japanese) and summaries (synopsis, SciTLDR)."""

import os
import re
import tempfile
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

from regard.core.cached_folder import cache_folder
from regard.core.errors import DataError
from regard.data.datasets.download import fetch, local_folder
from regard.data.datasets.loading import Parts, build_splits, check_argument, find_folder
from regard.data.example import Example
from regard.data.expansion import check_member
from regard.data.splits import Splits, drop_overlap, split_by_source
from regard.data.text.lines import read_lines
from regard.data.text.readers import TWO_COLUMNS, read_examples

MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
TATOEBA_URL = "https://www.manythings.org/anki/"

MULTI30K_PARTS = ("train", "val", "test_2016_flickr")
OVERLAP = "multi30k_overlap.tsv"
"""File in the folder of Flickr8k: split of Multi30k, line number from 0, and photo."""
NUM_VALID, NUM_TEST = 500, 1_000
"""Minimum number of held-out pairs with photos, so that small differences are significant; the
official splits have a quarter of it."""

SUMMARIES = {
    "synopsis": ("train.tsv.gz", "valid.tsv.gz", "test.tsv.gz"),
    "scitldr": ("train.jsonl.gz", "dev.jsonl.gz", "test.jsonl.gz"),
}
"""Files of the official splits."""

PhotoPair = tuple[str, Example]
"""A photo and the sentence pair that describes it."""


def load_tatoeba(argument: str, seed: int) -> Splits:
    """Load English sentences with translations, split by English sentence."""
    code = argument or "deu"
    if not re.fullmatch("[a-z]{2,3}", code):
        raise DataError(
            f"The argument of 'tatoeba:' must be a language code such as 'deu', but is '{code}'."
        )
    local = sorted(local_folder("tatoeba").glob(f"{code}-eng*.tsv.gz"))
    if local:
        origin, examples = str(local[-1]), read_examples(local[-1], formats=TWO_COLUMNS)
    else:
        base = os.environ.get("REGARD_TATOEBA_URL", TATOEBA_URL).rstrip("/")
        origin = f"{base}/{code}-eng.zip"
        archive = fetch(
            origin, cache=cache_folder() / "tatoeba", instead=(f"tatoeba/{code}-eng.tsv.gz",)
        )
        examples = _read_zipped(archive, f"{code}.txt")
    splits = split_by_source(examples, seed=seed)
    return replace(splits, note=f"{origin}, seed {seed}, {splits.note}")


def _read_zipped(archive: Path, member: str) -> list[Example]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(archive) as opened:
                check_member(f"{archive}/{member}", opened.getinfo(member))
                extracted = opened.extract(member, folder)
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataError(
                f"{archive} cannot be unpacked ({error}). Delete it to download it again."
            ) from None
        return read_examples(extracted, formats=TWO_COLUMNS)


def load_multi30k(argument: str, seed: int) -> Splits:
    """Load English image descriptions with German ones in their official split.

    Args:
        argument: Empty; `images` for the pairs whose image is in Flickr8k, with the image; or
            `images-text` for the same pairs without it.
        seed: Not used.
    """
    check_argument(argument, "multi30k", "images", "images-text")
    folder = local_folder("multi30k")
    origin = str(folder)
    if not (folder / "train.en.gz").is_file():
        origin, folder = MULTI30K_URL, cache_folder() / "multi30k"
        files = [f"{part}.{language}.gz" for part in MULTI30K_PARTS for language in ("en", "de")]
        instead = [f"multi30k/{file}" for file in files]
        for file in files:
            fetch(f"{MULTI30K_URL}{file}", cache=folder, instead=instead)
    parts = _read_sides(folder, MULTI30K_PARTS, "de")
    if argument:
        return _with_photos(parts, has_images=argument == "images")
    return build_splits(parts, f"official split of {origin}, test_2016_flickr")


def _with_photos(parts: Parts, *, has_images: bool) -> Splits:
    """Return the pairs of Multi30k whose photo is in Flickr8k, with or without the photo.

    The pairs and their order are the same with and without photos. A held-out split has its
    official pairs first and is filled up from the training split by a hash of the photo's name,
    independently of the seed. Every photo has one pair only, so no photo is in two splits.
    """
    train, valid, test = _find_photos(parts)
    official = f"{len(valid):,} and {len(test):,} of them official"
    # An arbitrary order that depends on the photo only.
    train.sort(key=lambda pair: zlib.crc32(pair[0].encode()))
    num_test, num_valid = max(0, NUM_TEST - len(test)), max(0, NUM_VALID - len(valid))
    test += train[:num_test]
    valid += train[num_test : num_test + num_valid]
    held_out = {example.source for _, example in (*valid, *test)}
    rest = [pair for pair in train[num_test + num_valid :] if pair[1].source not in held_out]
    examples = (
        [
            replace(example, source=(example.source, photo)) if has_images else example
            for photo, example in part
        ]
        for part in (rest, valid, test)
    )
    note = f"Multi30k with photos in Flickr8k, validation and test filled up by photo, {official}"
    return build_splits(examples, note)


def _find_photos(parts: Parts) -> list[list[PhotoPair]]:
    folder = find_folder("flickr8k", OVERLAP, "images_96.zip")
    by_name = dict(zip(MULTI30K_PARTS, parts, strict=True))
    pairs: dict[str, list[PhotoPair]] = {name: [] for name in MULTI30K_PARTS}
    for number, line in enumerate(read_lines(folder / OVERLAP), start=1):
        try:
            name, row, photo = line.split("\t")
            example = by_name[name][int(row)]
        except (KeyError, IndexError, ValueError):
            raise DataError(
                f"{folder / OVERLAP}, line {number:,}, must have a split of Multi30k, a line "
                f"number and a photo, separated by tabs, but is '{line[:80]}'."
            ) from None
        pairs[name].append((f"{folder}/images_96.zip/{photo}", example))
    return list(pairs.values())


def load_small_enja(argument: str, seed: int) -> Splits:
    """Load the small Tanaka corpus, English and Japanese, in its official split.

    The spaces between Japanese words in the file are removed unless the argument is `tokenised`.
    """
    check_argument(argument, "small_enja", "tokenised")
    names = ("train", "dev", "test")
    files = [f"{name}.{language}.gz" for name in names for language in ("en", "ja")]
    folder = find_folder("small_enja", *files)
    parts = _read_sides(folder, names, "ja")
    origin = f"official split of {folder}, Japanese "
    if argument:
        return build_splits(parts, origin + "tokenised")
    joined = (
        [replace(example, target="".join(example.target.split())) for example in part]
        for part in parts
    )
    return build_splits(joined, origin + "without spaces")


def load_summaries(name: str, argument: str, seed: int) -> Splits:
    """Load texts with summaries: `synopsis` or `scitldr` (Cachola et al. 2020)."""
    check_argument(argument, name)
    folder = find_folder(name, *SUMMARIES[name])
    train, valid, test = (
        read_examples(folder / file, formats=TWO_COLUMNS) for file in SUMMARIES[name]
    )
    _, num_shared = drop_overlap(train, [*valid, *test])
    shared = f"{num_shared:,} training pairs have" if num_shared else "no training pair has"
    note = f"; {shared} a source that is also held out"
    return build_splits((train, valid, test), f"official split of {folder}", note)


def _read_sides(folder: Path, names: tuple[str, str, str], language: str) -> Parts:
    train, valid, test = (
        read_examples(folder / f"{name}.en.gz", folder / f"{name}.{language}.gz") for name in names
    )
    return train, valid, test
