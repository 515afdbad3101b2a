"""Read files and built-in data sets as training, validation and test splits without overlap."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from regard.core.errors import ConfigError, DataError
from regard.data.corpus import distinct_targets, join
from regard.data.datasets.catalog import DATASETS, Reader, find_data
from regard.data.datasets.texts import read_text_corpus, split_text
from regard.data.example import Example
from regard.data.modality import MODALITIES, Modality, check_sources, modality_of
from regard.data.splits import Splits, drop_overlap, merge_references, split_by_source
from regard.data.text.columns import COLUMNS, TARGET
from regard.data.text.sources import read_sources
from regard.tasks.recipe import BaseDataConfig, BaseRecipe
from regard.tasks.word_links import add_links

Paths: TypeAlias = tuple[str, ...]
"""The name of a built-in data set, a file, or two line-aligned files."""

Recipe = TypeVar("Recipe", bound=BaseRecipe)

SplitReader: TypeAlias = Callable[..., list[Example]]
"""Reads `(paths, split, *, config)`, as `read_split` does."""


def read_pairs(
    data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig, read: Reader | None = None
) -> Splits:
    """Read pairs as splits that share no source.

    Args:
        data: The name of a built-in data set, a file of pairs, or two line-aligned files.
        valid: Validation data, likewise; split off the training data if empty.
        test: Test data, likewise.
        config: Data settings: the seed of splits and of generated data, the columns.
        read: Reads a file; by default, a file of pairs.
    """
    read = read or _pair_reader(config)
    seed = config.seed
    loaded = find_data(*data, seed=seed, read=read)
    if links := getattr(config, "links", ""):
        loaded = add_links(loaded, links)
    valid_split = read_split(valid, "valid", config=config, read=read)
    test_split = read_split(test, "test", config=config, read=read)
    if isinstance(loaded, Splits):
        train, note = _keep_readable(loaded.train, config), loaded.note
        valid_split = valid_split or _hold_out(loaded.valid, config)
        test_split = test_split or _hold_out(loaded.test, config)
    elif valid_split and test_split:
        train, note = _keep_readable(loaded, config), "validation and test data as given"
    else:
        split = split_by_source(_keep_readable(loaded, config), seed=seed)
        note = split.note
        # If a split is given as a file, its share of the data stays in the training data.
        train = join(split.train, (split.valid if valid else []) + (split.test if test else []))
        valid_split = valid_split or _hold_out(split.valid, config)
        test_split = test_split or _hold_out(split.test, config)
    train, num_dropped = drop_overlap(train, [*valid_split, *test_split], seed=seed)
    if not train:
        raise DataError(
            f"Nothing is left to train on: all {num_dropped:,} training pairs have a source "
            "that is also in the validation or test data. Give other data for them."
        )
    if num_dropped:
        note += f"; {num_dropped:,} training pairs left out, their source is held out"
    return Splits(train=train, valid=valid_split, test=test_split, note=note)


def read_split(
    paths: Paths, split: str, *, config: BaseDataConfig, read: Reader | None = None
) -> list[Example]:
    """Read all of a file of pairs, or one split (`valid`, `test`) of a built-in data set."""
    if not paths:
        return []
    if len(paths) > 2:
        raise ConfigError(
            f"`--{split}` must be one file of pairs or two line-aligned files, "
            f"but there are {len(paths)}: {', '.join(paths)}."
        )
    read = read or _pair_reader(config)
    loaded = find_data(*paths, seed=config.seed, read=read)
    return _hold_out(_choose_split(loaded, split), config)


def _choose_split(loaded: Splits | Sequence[Example], split: str) -> Sequence[Example]:
    chosen: Sequence[Example] = getattr(loaded, split) if isinstance(loaded, Splits) else loaded
    return chosen


def find_modality(config: BaseDataConfig) -> Modality:
    """Return the modality of the sources; text if the settings do not name one."""
    source = getattr(config, "source", None)
    return MODALITIES["text"] if source is None else modality_of(source)


def _pair_reader(config: BaseDataConfig) -> Reader:
    columns = getattr(config, "columns", ())
    return skip_errors(partial(find_modality(config).read_pairs, columns=columns), config)


def _labelled_reader(config: BaseDataConfig) -> Reader:
    return skip_errors(find_modality(config).read_labelled, config)


def skip_errors(read: Callable[..., Sequence[Example]], config: BaseDataConfig) -> Reader:
    """Return a reader of files that skips lines without a pair if the data settings say so."""
    # Readers of modalities from outside the package need not have this option.
    return read if config.on_error == "stop" else partial(read, on_error=config.on_error)


def _hold_out(examples: Sequence[Example], config: BaseDataConfig) -> list[Example]:
    """Return held-out examples; each image or recording occurs once, with all its references."""
    examples = list(_keep_readable(examples, config))
    return merge_references(examples) if find_modality(config).merges_references else examples


def _keep_readable(examples: Sequence[Example], config: BaseDataConfig) -> Sequence[Example]:
    """Drop unreadable examples; raise if the formats of many are not read, unless set to skip."""
    medium = find_modality(config).medium
    if medium is not None and config.on_error == "stop":
        sources = (example.source for example in examples)
        medium.check_formats([source for source in sources if isinstance(source, str)])
    return drop_unreadable(examples, config)


def drop_unreadable(examples: Sequence[Example], config: BaseDataConfig) -> Sequence[Example]:
    """Drop examples whose source cannot be read, and log how many; text is never dropped."""
    return find_modality(config).drop_unreadable(examples, getattr(config, "source", None))


def with_columns(recipe: Recipe, columns: Paths | None, *, needs_target: bool = True) -> Recipe:
    """Return a recipe with other columns of files; the recipe itself if they are None.

    Args:
        recipe: The recipe of a run.
        columns: Roles or titles of the columns of a file, as in `data.columns`.
        needs_target: Whether the file must have targets; otherwise it is a file of texts, and
            `-,source` or a single title are enough.
    """
    if columns is None:
        return recipe
    if not hasattr(recipe.data, "columns"):
        raise ConfigError(
            "`--columns` is for models that generate text, but the task of this run is "
            f"'{recipe.task}'. Leave it out."
        )
    if not needs_target:
        modality = find_modality(recipe.data).name
        if modality != "text":
            raise ConfigError(
                "`--columns` is for files of texts here, but the source of this run is "
                f"'{modality}'. Leave it out."
            )
        if TARGET not in columns and (len(columns) == 1 or {*columns} <= {*COLUMNS}):
            columns = (*columns, TARGET)
    data: Any = recipe.data
    return replace(recipe, data=replace(data, columns=columns))


def read_inputs(path: str, recipe: BaseRecipe, *, labels: Collection[str] = ()) -> Iterator[str]:
    """Read sources to predict for: lines of a text file, or paths of images and recordings.

    Args:
        path: A text file or `-`, also a file of pairs, whose sources are read; an image or a
            recording, a folder or a list of them; a file with a text and an image per line.
        recipe: Its data settings name the modality and the columns of files of pairs.
        labels: Labels that the task predicts, which may follow the texts in a file.
    """
    modality, columns = find_modality(recipe.data), getattr(recipe.data, "columns", None)
    if modality.name == "text" and (columns is not None or labels):
        return check_sources(path, read_sources(path, columns=columns or (), labels=labels))
    # The texts of language models are not pairs, and may contain tabs.
    return iter(modality.read_sources(path))


def read_inputs_or_test_split(
    data: str, recipe: BaseRecipe, *, read_split: SplitReader, labels: Collection[str] = ()
) -> list[Any]:
    """Read sources from a file as `read_inputs` does, or from the test split of a data set.

    Args:
        data: A file, `-`, a folder, or the name of a built-in data set; a file has precedence.
        recipe: Its data settings name the modality.
        read_split: Reads a split of a built-in data set, as `Task.read_split` does.
        labels: As for `read_inputs`.
    """
    if data.partition(":")[0] in DATASETS and not Path(data).exists():
        return [example.source for example in read_split((data,), "test", config=recipe.data)]
    return list(read_inputs(data, recipe, labels=labels))


def read_texts(data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig) -> Splits:
    """Read texts, line by line; missing splits are cut off the end of the training text.

    Args:
        data: The name of a built-in data set, or a text file.
        valid: Validation text, likewise.
        test: Test text, likewise.
        config: Data settings: the seed of generated data.
    """
    loaded = _find_text(data, "data", seed=config.seed)
    valid_split = read_text_split(valid, "valid", config=config)
    test_split = read_text_split(test, "test", config=config)
    if not isinstance(loaded, Splits):
        if valid_split and test_split:
            loaded = Splits(loaded, valid_split, test_split, "validation and test text as given")
        else:
            loaded = split_text(loaded)
    return Splits(loaded.train, valid_split or loaded.valid, test_split or loaded.test, loaded.note)


def read_text_split(paths: Paths, split: str, *, config: BaseDataConfig) -> list[Example]:
    """Read all of a text file, or one split (`valid`, `test`) of a built-in data set."""
    if not paths:
        return []
    return list(_choose_split(_find_text(paths, split, seed=config.seed), split))


def _find_text(paths: Paths, option: str, *, seed: int) -> Splits | Sequence[Example]:
    if len(paths) > 1:
        raise ConfigError(
            f"A text must be one file, but `{option}` has {len(paths)}: {', '.join(paths)}."
        )
    loaded = find_data(*paths, seed=seed, read=lambda path, second: read_text_corpus(path))
    if isinstance(loaded, Splits) and any(example.target for example in loaded.train[:100]):
        raise DataError(
            f"'{paths[0]}' is a data set of pairs, but a language model learns from text. Give a "
            "text file, 'shakespeare' or 'wikitext2'."
        )
    return loaded


def read_labelled_texts(
    data: Paths, valid: Paths, test: Paths, *, config: BaseDataConfig
) -> Splits:
    """Read sources with labels, otherwise as `read_pairs`."""
    splits = read_pairs(data, valid, test, config=config, read=_labelled_reader(config))
    known = distinct_targets(splits.train)
    for split, examples in (("validation", splits.valid), ("test", splits.test)):
        unknown = sorted({example.target for example in examples} - known)
        if unknown:
            raise DataError(
                f"Every label must be in the training data, but '{unknown[0]}' is only in the "
                f"{split} data. Give more examples of it, or leave it out."
            )
    return splits


def read_labelled_split(paths: Paths, split: str, *, config: BaseDataConfig) -> list[Example]:
    """Read one split of labelled data, otherwise as `read_split`."""
    return read_split(paths, split, config=config, read=_labelled_reader(config))
