"""Files and data sets of images → images that are their own targets, whatever is said of them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.catalog import Reader
from regard.data.example import Example
from regard.data.modality import Modality
from regard.data.splits import Splits
from regard.tasks.reading import Paths, find_modality, read_pairs, read_split
from regard.tasks.recipe import BaseDataConfig

TABLES = frozenset((".tsv", ".csv", ".json", ".jsonl"))
"""What the names of files end in that say something of each image."""


def read_images(data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig) -> Splits:
    """Read images or videos, otherwise as `read_pairs`; labels and captions are left out."""
    splits = read_pairs(data, valid, test, config=config, read=_reader(config))
    return splits.map(_as_targets)


def read_image_split(paths: Paths, side: str, *, config: BaseDataConfig) -> list[Example]:
    """Read one side of the images, otherwise as `read_split`."""
    return _as_targets(read_split(paths, side, config=config, read=_reader(config)))


def _reader(config: BaseDataConfig) -> Reader:
    return partial(_read_files, modality=find_modality(config))


def _read_files(path: str, second: str | None = None, *, modality: Modality) -> list[Example]:
    """Read a folder, an archive or a list of images, or a file that says something of each."""
    if second is not None:
        raise DataError(
            f"Images are their own targets, so one file or folder is enough, but there is a "
            f"second one, {second}. Leave it out."
        )
    if Path(path).suffix.lower() in TABLES:
        return modality.read_pairs(path)
    return [Example(found) for found in modality.read_sources(path)]


def _as_targets(examples: Sequence[Example]) -> list[Example]:
    """Make each image its own target, once however often it is named."""
    found: dict[str, Example] = {}
    for example in examples:
        if not isinstance(example.source, str):
            raise DataError(
                f"A source must be one image, but is {example.source}. Give a data set of images."
            )
        found.setdefault(example.source, Example(example.source, example.source, tags=example.tags))
    return list(found.values())
