"""Read files and data sets of images or videos as examples that are their own targets."""

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
"""File name extensions of tables with labels or captions of images."""


def read_images(data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig) -> Splits:
    """Read images or videos, otherwise as `read_pairs`; ignore labels and captions."""
    splits = read_pairs(data, valid, test, config=config, read=_reader(config))
    return splits.map(_as_targets)


def read_image_split(paths: Paths, split: str, *, config: BaseDataConfig) -> list[Example]:
    """Read one split of the images, otherwise as `read_split`."""
    return _as_targets(read_split(paths, split, config=config, read=_reader(config)))


def _reader(config: BaseDataConfig) -> Reader:
    return partial(_read_files, modality=find_modality(config))


def _read_files(path: str, second: str | None = None, *, modality: Modality) -> Sequence[Example]:
    """Read a folder, an archive or a list of images, or a table with labels or captions."""
    if second is not None:
        raise DataError(
            f"Images are their own targets, so one file or folder is enough, but there is a "
            f"second one, {second}. Leave it out."
        )
    if Path(path).suffix.lower() in TABLES:
        return modality.read_pairs(path)
    return [Example(source) for source in modality.read_sources(path)]


def _as_targets(examples: Sequence[Example]) -> list[Example]:
    """Make each image its own target; each image occurs once."""
    distinct: dict[str, Example] = {}
    for example in examples:
        if not isinstance(example.source, str):
            raise DataError(
                f"A source must be one image, but is {example.source}. Give a data set of images."
            )
        image = example.source
        distinct.setdefault(image, Example(image, image, tags=example.tags))
    return list(distinct.values())
