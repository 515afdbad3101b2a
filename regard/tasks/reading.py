"""Files and data sets → training, validation and test data that share no source."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from regard.core.errors import ConfigError, DataError
from regard.data.audio.field import AudioConfig, keep_audible
from regard.data.audio.files import find_sounds, read_sound_folder, read_transcripts
from regard.data.datasets.catalog import DATASETS, Reader, find_data
from regard.data.datasets.labelled import read_labelled
from regard.data.datasets.texts import read_text, split_text
from regard.data.example import Example
from regard.data.image.field import ImageConfig, keep_readable
from regard.data.image.files import (
    find_images,
    place_images,
    read_captions,
    read_image_folder,
    read_with_images,
)
from regard.data.modality import JOINED_COLUMNS, JoinedConfig, read_pair
from regard.data.splits import Splits, drop_overlap, merge_references, split_by_source
from regard.data.text.readers import read_examples, read_sources
from regard.data.video.field import VideoConfig, keep_readable_videos
from regard.data.video.files import find_videos, read_video_captions, read_video_folder
from regard.tasks.recipe import BaseDataConfig, BaseRecipe, DataConfig

SideReader: TypeAlias = Callable[..., list[Example]]
"""Reads `(paths, side, *, config)`, as `read_side` does."""


def read_pairs(
    data: tuple[str, ...],
    valid: tuple[str, ...],
    test: tuple[str, ...],
    *,
    config: BaseDataConfig,
    read: Reader | None = None,
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
    if _reads_both(config):
        read = partial(read_with_images, read=read)
    found = find_data(*data, seed=seed, read=read)
    valid_side = read_side(valid, "valid", config=config, read=read)
    test_side = read_side(test, "test", config=config, read=read)
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


def read_side(
    paths: tuple[str, ...], side: str, *, config: BaseDataConfig, read: Reader | None = None
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
    if _reads_both(config):
        read = partial(read_with_images, read=read)
    found = find_data(*paths, seed=config.seed, read=read)
    chosen: list[Example] = getattr(found, side) if isinstance(found, Splits) else found
    return _hold_out(chosen, config)


def _pair_reader(config: BaseDataConfig) -> Reader:
    columns = config.columns if isinstance(config, DataConfig) else ()
    if _reads_both(config):
        columns = columns or JOINED_COLUMNS
    if _sees(config):
        return lambda path, second: read_captions(path, columns=columns)
    if _hears(config):
        return lambda path, second: read_transcripts(path, columns=columns)
    if _watches(config):
        return lambda path, second: read_video_captions(path, columns=columns)
    return partial(read_examples, columns=columns)


def _sees(config: BaseDataConfig) -> bool:
    """Tell whether sources are images."""
    return isinstance(getattr(config, "source", None), ImageConfig)


def _watches(config: BaseDataConfig) -> bool:
    """Tell whether sources are videos."""
    return isinstance(getattr(config, "source", None), VideoConfig)


def _hears(config: BaseDataConfig) -> bool:
    """Tell whether sources are recordings."""
    return isinstance(getattr(config, "source", None), AudioConfig)


def _reads_both(config: BaseDataConfig) -> bool:
    """Tell whether sources are texts with an image."""
    return isinstance(getattr(config, "source", None), JoinedConfig)


def _hold_out(examples: list[Example], config: BaseDataConfig) -> list[Example]:
    """Return examples to measure on: an image or the like once, with all that is said of it."""
    examples = drop_unreadable(examples, config)
    has_texts = not (_sees(config) or _hears(config) or _watches(config))
    return examples if has_texts else merge_references(examples)


def drop_unreadable(examples: list[Example], config: BaseDataConfig) -> list[Example]:
    """Drop examples whose image and the like cannot be read, and say so; text is always kept."""
    source = getattr(config, "source", None)
    if isinstance(source, ImageConfig):
        return keep_readable(examples, source)
    if isinstance(source, VideoConfig):
        return keep_readable_videos(examples, source)
    if isinstance(source, AudioConfig):
        return keep_audible(examples, source)
    if isinstance(source, JoinedConfig):
        return keep_readable(
            examples, source.image, reference=lambda example: read_pair(example.source)[1]
        )
    return examples


def read_asked(path: str, recipe: BaseRecipe) -> Iterator[str]:
    """Read what is asked: the lines of a file or, of images and recordings, their references.

    Args:
        path: A text file or `-`; an image or a recording, a folder or a list of them; a file with a
            text and an image a line.
        recipe: What the model reads.
    """
    if _sees(recipe.data):
        return iter(find_images(path))
    if _watches(recipe.data):
        return iter(find_videos(path))
    if _hears(recipe.data):
        return iter(find_sounds(path))
    lines = read_sources(path)
    return place_images(lines, path) if _reads_both(recipe.data) else lines


def read_listed(data: str, recipe: BaseRecipe, *, read_side: SideReader) -> list[Any]:
    """Read sources from a file as `read_asked` does, or those of a named data set's test part.

    Args:
        data: A file, `-`, a folder, or the name of a data set; a file wins over a name.
        recipe: What the model reads.
        read_side: How the task reads data sets with a name.
    """
    if data.partition(":")[0] in DATASETS and not Path(data).exists():
        return [example.source for example in read_side((data,), "test", config=recipe.data)]
    return list(read_asked(data, recipe))


def read_texts(
    data: tuple[str, ...],
    valid: tuple[str, ...],
    test: tuple[str, ...],
    *,
    config: BaseDataConfig,
) -> Splits:
    """Read texts, line by line; what is not given is split off the end of the training text.

    Args:
        data: A data set's name or a text file.
        valid: Validation text, likewise.
        test: Test text, likewise.
        config: The seed of generated data.
    """
    found = _find_text(data, "data", seed=config.seed)
    valid_side = read_text_side(valid, "valid", config=config)
    test_side = read_text_side(test, "test", config=config)
    if not isinstance(found, Splits):
        if valid_side and test_side:
            found = Splits(found, valid_side, test_side, "validation and test text as given")
        else:
            found = split_text(found)
    return Splits(found.train, valid_side or found.valid, test_side or found.test, found.note)


def read_text_side(paths: tuple[str, ...], side: str, *, config: BaseDataConfig) -> list[Example]:
    """Read a text file whole, or one side (`valid`, `test`) of a data set with a name."""
    if not paths:
        return []
    found = _find_text(paths, side, seed=config.seed)
    if isinstance(found, Splits):
        chosen: list[Example] = getattr(found, side)
        return chosen
    return found


def _find_text(paths: tuple[str, ...], what: str, *, seed: int) -> Splits | list[Example]:
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
    data: tuple[str, ...],
    valid: tuple[str, ...],
    test: tuple[str, ...],
    *,
    config: BaseDataConfig,
) -> Splits:
    """Read texts, pairs of texts or images with their labels, otherwise as `read_pairs`."""
    splits = read_pairs(data, valid, test, config=config, read=_label_reader(config))
    known = {example.target for example in splits.train}
    for side, examples in (("validation", splits.valid), ("test", splits.test)):
        unknown = sorted({example.target for example in examples} - known)
        if unknown:
            raise DataError(
                f"Every label must be in the training data, but '{unknown[0]}' is only in the "
                f"{side} data. Give more examples of it, or leave it out."
            )
    return splits


def read_labelled_side(
    paths: tuple[str, ...], side: str, *, config: BaseDataConfig
) -> list[Example]:
    """Read one side of labelled data, otherwise as `read_side`."""
    return read_side(paths, side, config=config, read=_label_reader(config))


def _label_reader(config: BaseDataConfig) -> Reader:
    if _watches(config):
        return _read_labelled_videos
    if _hears(config):
        return _read_labelled_sounds
    return _read_labelled_images if _sees(config) else read_labelled


def _read_labelled_images(path: str, second: str | None = None) -> list[Example]:
    """Read a folder with one for each label, or a file with an image and its label a line."""
    return read_image_folder(path) if Path(path).is_dir() else read_captions(path)


def _read_labelled_videos(path: str, second: str | None = None) -> list[Example]:
    """Read a folder with one for each label, or a file with a video and its label a line."""
    return read_video_folder(path) if Path(path).is_dir() else read_video_captions(path)


def _read_labelled_sounds(path: str, second: str | None = None) -> list[Example]:
    """Read a folder with one for each label, or a file with a recording and its label a line."""
    return read_sound_folder(path) if Path(path).is_dir() else read_transcripts(path)
