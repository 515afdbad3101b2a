"""Translations as data sets with a name: Tatoeba, Multi30k, and English with Japanese."""

import os
import re
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.download import cache_folder, fetch, local_folder
from regard.data.datasets.loading import check_argument, find_folder, with_sizes
from regard.data.datasets.multi30k_images import load_seen_multi30k
from regard.data.example import Example
from regard.data.splits import Splits, split_by_source
from regard.data.text.readers import read_examples

MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
TATOEBA_URL = "https://www.manythings.org/anki/"


def load_tatoeba(argument: str, seed: int) -> Splits:
    """Return English sentences with those of another language, split by the English side."""
    code = argument or "deu"
    if not re.fullmatch("[a-z]{2,3}", code):
        raise DataError(
            f"What follows 'tatoeba:' must be a language code such as 'deu', but is '{code}'."
        )
    local = sorted(local_folder("tatoeba").glob(f"{code}-eng*.tsv.gz"))
    if local:
        return _with_origin(split_by_source(read_examples(local[-1]), seed=seed), local[-1], seed)
    url = os.environ.get("REGARD_TATOEBA_URL", TATOEBA_URL).rstrip("/") + f"/{code}-eng.zip"
    archive = fetch(url, cache=cache_folder() / "tatoeba")
    return _with_origin(split_by_source(_read_zipped(archive, f"{code}.txt"), seed=seed), url, seed)


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
    parts = ("train", "val", "test_2016_flickr")
    local = local_folder("multi30k")
    if (local / "train.en.gz").is_file():
        origin: Path | str = local
        folder = local
    else:
        origin = MULTI30K_URL
        folder = cache_folder() / "multi30k"
        for part in parts:
            for language in ("en", "de"):
                fetch(f"{MULTI30K_URL}{part}.{language}.gz", cache=folder)
    train, valid, test = (
        read_examples(folder / f"{part}.en.gz", folder / f"{part}.de.gz") for part in parts
    )
    whole = with_sizes((train, valid, test), f"official split of {origin}, test_2016_flickr")
    return load_seen_multi30k(whole, has_images=argument == "images") if argument else whole


def load_small_enja(argument: str, seed: int) -> Splits:
    """Return English sentences with Japanese ones, the small Tanaka corpus in its official split.

    The file parts the Japanese words by blanks, which no Japanese text has: they are left out,
    unless the argument is `tokenised`.
    """
    check_argument(argument, "small_enja", "tokenised")
    folder = find_folder("small_enja", "train.en.gz")
    train, valid, test = (
        read_examples(folder / f"{part}.en.gz", folder / f"{part}.ja.gz")
        for part in ("train", "dev", "test")
    )
    origin = f"official split of {folder}, Japanese "
    if argument:
        return with_sizes((train, valid, test), origin + "tokenised")
    parts = (_without_blanks(train), _without_blanks(valid), _without_blanks(test))
    return with_sizes(parts, origin + "without blanks")


def _without_blanks(examples: list[Example]) -> list[Example]:
    return [replace(example, target="".join(example.target.split())) for example in examples]


def _with_origin(splits: Splits, origin: str | Path, seed: int) -> Splits:
    note = f"{origin}, seed {seed}, {splits.note}"
    return Splits(splits.train, splits.valid, splits.test, note)
