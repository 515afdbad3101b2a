"""Files and data sets → training, validation and test data that share no source."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.catalog import DATASETS, Reader, find_data
from regard.data.datasets.texts import read_text, split_text
from regard.data.example import Example
from regard.data.modality import MODALITIES, Modality, modality_of
from regard.data.splits import Splits, drop_overlap, merge_references, split_by_source
from regard.tasks.recipe import BaseDataConfig, BaseRecipe

Paths: TypeAlias = tuple[str, ...]
"""A data set's name, a file, or two line-aligned files."""

SplitReader: TypeAlias = Callable[..., list[Example]]
"""Reads `(paths, side, *, config)`, as `read_split` does."""


def read_pairs(
    data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig, read: Reader | None = None
) -> Splits:
    """Read pairs so that no source is on two sides.

    Args:
        data: A data set's name, a file of pairs, or two line-aligned files.
        valid: Validation data, likewise; split off the training data if empty.
        test: Test data, likewise.
        config: The seed of splits and of generated data, and what stands in which column.
        read: How files are read, if not as pairs.
    """
    read = read or _pair_reader(config)
    seed = config.seed
    found = find_data(*data, seed=seed, read=read)
    valid_side = read_split(valid, "valid", config=config, read=read)
    test_side = read_split(test, "test", config=config, read=read)
    if isinstance(found, Splits):
        train, note = drop_unreadable(found.train, config), found.note
        valid_side = valid_side or _hold_out(found.valid, config)
        test_side = test_side or _hold_out(found.test, config)
    elif valid_side and test_side:
        train, note = drop_unreadable(found, config), "validation and test data as given"
    else:
        found = drop_unreadable(found, config)
        split = split_by_source(found, seed=seed)
        note = split.note
        # What is not needed for a side that was given goes back to training.
        train = split.train + (split.valid if valid else []) + (split.test if test else [])
        valid_side = valid_side or _hold_out(split.valid, config)
        test_side = test_side or _hold_out(split.test, config)
    train, num_dropped = drop_overlap(train, [*valid_side, *test_side])
    if not train:
        raise DataError(
            f"Nothing is left to train on: all {num_dropped:,} training pairs have a source "
            "that is also in the validation or test data. Give other data for them."
        )
    if num_dropped:
        note += f"; {num_dropped:,} training pairs left out, their source is held out"
    return Splits(train=train, valid=valid_side, test=test_side, note=note)


def read_split(
    paths: Paths, side: str, *, config: BaseDataConfig, read: Reader | None = None
) -> list[Example]:
    """Read a file of pairs whole, or one side (`valid`, `test`) of a data set with a name."""
    if not paths:
        return []
    if len(paths) > 2:
        raise ConfigError(
            f"`--{side}` must be one file of pairs or two line-aligned files, "
            f"but there are {len(paths)}: {', '.join(paths)}."
        )
    read = read or _pair_reader(config)
    found = find_data(*paths, seed=config.seed, read=read)
    return _hold_out(_choose_side(found, side), config)


def _choose_side(found: Splits | list[Example], side: str) -> list[Example]:
    chosen: list[Example] = getattr(found, side) if isinstance(found, Splits) else found
    return chosen


def find_modality(config: BaseDataConfig) -> Modality:
    """Return the modality of the sources; tasks whose settings do not name one read text."""
    source = getattr(config, "source", None)
    return MODALITIES["text"] if source is None else modality_of(source)


def _pair_reader(config: BaseDataConfig) -> Reader:
    return partial(find_modality(config).read_pairs, columns=getattr(config, "columns", ()))


def _hold_out(examples: list[Example], config: BaseDataConfig) -> list[Example]:
    """Return held-out examples: an image or the like once, with all its targets as references."""
    examples = drop_unreadable(examples, config)
    return merge_references(examples) if find_modality(config).merges_references else examples


def drop_unreadable(examples: list[Example], config: BaseDataConfig) -> list[Example]:
    """Drop examples whose source cannot be read, and log how many; text is always kept."""
    return find_modality(config).drop_unreadable(examples, getattr(config, "source", None))


def read_inputs(path: str, recipe: BaseRecipe) -> Iterator[str]:
    """Read sources to predict for: the lines of a text file, or references of images and the like.

    Args:
        path: A text file or `-`; an image or a recording, a folder or a list of them; a file with a
            text and an image a line.
        recipe: Its data settings name the modality.
    """
    return iter(find_modality(recipe.data).read_sources(path))


def read_inputs_or_test_split(
    data: str, recipe: BaseRecipe, *, read_split: SplitReader
) -> list[Any]:
    """Read sources from a file as `read_inputs` does, or those of a named data set's test part.

    Args:
        data: A file, `-`, a folder, or the name of a data set; a file wins over a name.
        recipe: What the model reads.
        read_split: How the task reads data sets with a name.
    """
    if data.partition(":")[0] in DATASETS and not Path(data).exists():
        return [example.source for example in read_split((data,), "test", config=recipe.data)]
    return list(read_inputs(data, recipe))


def read_texts(data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig) -> Splits:
    """Read texts, line by line; what is not given is split off the end of the training text.

    Args:
        data: A data set's name or a text file.
        valid: Validation text, likewise.
        test: Test text, likewise.
        config: The seed of generated data.
    """
    found = _find_text(data, "data", seed=config.seed)
    valid_side = read_text_split(valid, "valid", config=config)
    test_side = read_text_split(test, "test", config=config)
    if not isinstance(found, Splits):
        if valid_side and test_side:
            found = Splits(found, valid_side, test_side, "validation and test text as given")
        else:
            found = split_text(found)
    return Splits(found.train, valid_side or found.valid, test_side or found.test, found.note)


def read_text_split(paths: Paths, side: str, *, config: BaseDataConfig) -> list[Example]:
    """Read a text file whole, or one side (`valid`, `test`) of a data set with a name."""
    if not paths:
        return []
    return _choose_side(_find_text(paths, side, seed=config.seed), side)


def _find_text(paths: Paths, what: str, *, seed: int) -> Splits | list[Example]:
    if len(paths) > 1:
        raise ConfigError(
            f"A text must be one file, but `{what}` has {len(paths)}: {', '.join(paths)}."
        )
    found = find_data(*paths, seed=seed, read=lambda path, second: read_text(path))
    if isinstance(found, Splits) and any(example.target for example in found.train[:100]):
        raise DataError(
            f"'{paths[0]}' is a data set of pairs, but a language model learns from text. Give a "
            "text file, 'shakespeare' or 'wikitext2'."
        )
    return found


def read_labelled_texts(
    data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig
) -> Splits:
    """Read texts, pairs of texts or images with their labels, otherwise as `read_pairs`."""
    splits = read_pairs(data, valid, test, config=config, read=find_modality(config).read_labelled)
    known = {example.target for example in splits.train}
    for side, examples in (("validation", splits.valid), ("test", splits.test)):
        unknown = sorted({example.target for example in examples} - known)
        if unknown:
            raise DataError(
                f"Every label must be in the training data, but '{unknown[0]}' is only in the "
                f"{side} data. Give more examples of it, or leave it out."
            )
    return splits


def read_labelled_split(paths: Paths, side: str, *, config: BaseDataConfig) -> list[Example]:
    """Read one side of labelled data, otherwise as `read_split`."""
    return read_split(paths, side, config=config, read=find_modality(config).read_labelled)
