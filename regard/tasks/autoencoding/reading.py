"""Read files and data sets as texts that are their own targets."""

from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.texts import read_text
from regard.data.example import Example
from regard.data.modality import detect_modality
from regard.data.splits import Splits
from regard.data.text.readers import OnError, read_examples
from regard.tasks.reading import Paths, read_pairs, read_split, skip_errors
from regard.tasks.recipe import BaseDataConfig

TABLES = frozenset((".tsv", ".csv", ".jsonl", ".ndjson"))
"""File name extensions of files of pairs, whose sources are read."""


def read_plain_texts(data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig) -> Splits:
    """Read texts, one per line, or the sources of pairs; otherwise as `read_pairs`."""
    splits = read_pairs(data, valid, test, config=config, read=skip_errors(_read_file, config))
    return splits.map(_as_targets)


def read_plain_text_split(paths: Paths, split: str, *, config: BaseDataConfig) -> list[Example]:
    """Read one split of the texts, otherwise as `read_split`."""
    return _as_targets(
        read_split(paths, split, config=config, read=skip_errors(_read_file, config))
    )


def _read_file(
    path: str, second: str | None = None, *, on_error: OnError = "stop"
) -> list[Example]:
    """Read a text file, or a file of pairs."""
    if second is not None:
        raise DataError(
            "Texts are their own targets, so one file is enough, but there is a second one, "
            f"{second}. Leave it out."
        )
    if Path(path.removesuffix(".gz")).suffix.lower() in TABLES:
        return read_examples(path, on_error=on_error)
    return read_text(path)


def _as_targets(examples: Sequence[Example]) -> list[Example]:
    """Make each text its own target; drop duplicates and empty lines."""
    if detect_modality(examples).name != "text":
        raise DataError(
            f"A text is needed, but '{examples[0].source}' names an image or a recording. "
            "Autoencoders of images have the task 'image_to_image'."
        )
    distinct: dict[str, Example] = {}
    for example in examples:
        if not isinstance(example.source, str):
            raise DataError(
                f"A source must be one text, but is {len(example.source)}: {example.source}. "
                "Give a data set with one."
            )
        if text := example.source.strip():
            distinct.setdefault(text, Example(text, text, tags=example.tags))
    return list(distinct.values())
