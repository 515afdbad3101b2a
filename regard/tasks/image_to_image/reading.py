"""Files and data sets of images → images that are their own targets, whatever is said of them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.catalog import Reader
from regard.data.example import Example
from regard.data.modality import Modality, modality_of
from regard.data.splits import Splits
from regard.tasks import reading
from regard.tasks.image_to_image.recipe import ImageToImageDataConfig

TABLES = frozenset((".tsv", ".csv", ".json", ".jsonl"))
"""What the names of files end in that say something of each image."""


def read_pictures(
    data: tuple[str, ...],
    valid: tuple[str, ...],
    test: tuple[str, ...],
    *,
    config: ImageToImageDataConfig,
) -> Splits:
    """Read images or videos, otherwise as `read_pairs`; labels and captions are left out."""
    splits = reading.read_pairs(data, valid, test, config=config, read=_reader(config))
    return splits.map(_as_targets)


def read_pictures_side(
    paths: tuple[str, ...], side: str, *, config: ImageToImageDataConfig
) -> list[Example]:
    """Read one side of the images, otherwise as `read_side`."""
    return _as_targets(reading.read_side(paths, side, config=config, read=_reader(config)))


def _reader(config: ImageToImageDataConfig) -> Reader:
    return partial(_read_files, modality=modality_of(config.source))


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
