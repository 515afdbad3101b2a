"""Sources given on a command line: a text itself, or the name of a file."""

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.data.modality import MODALITIES
from regard.data.text.lines import STANDARD_INPUT, file_name
from regard.tasks.reading import Paths, find_modality, read_inputs, with_columns
from regard.tasks.recipe import BaseRecipe

TEXT_FILES = frozenset(
    (".bz2", ".csv", ".gz", ".json", ".jsonl", ".md", ".ndjson", ".toml", ".tsv", ".txt", ".xml")
    + (".xz", ".yaml", ".yml", ".zip")
)
"""Suffixes of names that are taken for a file, even if there is no such file."""


def read_argument(
    argument: str,
    recipe: BaseRecipe,
    *,
    labels: Collection[str] = (),
    columns: Paths | None = None,
) -> Iterator[str]:
    """Read the sources that an argument of a command names, as `read_inputs` does for a file.

    For models of texts, an argument that `is_text` is the only source.

    Args:
        argument: A file, a folder, `-` for standard input, or a text.
        recipe: Its data settings name the modality.
        labels: As for `read_inputs`.
        columns: Columns of the file, if not those of the recipe.
    """
    if not takes_text(recipe) or not is_text(argument):
        recipe = with_columns(recipe, columns, needs_target=False)
        return _warn_if_empty(argument, read_inputs(argument, recipe, labels=labels))
    if columns is not None:
        raise ConfigError(f"`--columns` is for files, but '{argument}' is a text. Leave it out.")
    if not argument.strip():
        raise ConfigError("The sentence must have at least one word, but is empty.")
    if not any(map(str.isspace, argument)):
        logger.info("'%s' is not a file, so it is taken as the source.", argument)
    return iter([argument])


def _warn_if_empty(argument: str, sources: Iterator[str]) -> Iterator[str]:
    """Return sources; log a warning if there are none."""
    for first in sources:
        return chain([first], sources)
    logger.warning("%s holds no source, so nothing is predicted.", file_name(argument))
    return iter(())


def check_text(argument: str, recipe: BaseRecipe) -> None:
    """Raise if a model of texts would take the name of a file for a text."""
    if not takes_text(recipe) or is_text(argument):
        return
    if argument == STANDARD_INPUT or Path(argument).exists():
        if Path(argument).is_file():
            next(read_inputs(argument, recipe), "")  # raises for images and recordings
        name = "Standard input" if argument == STANDARD_INPUT else argument
        raise ConfigError(
            f"The source must be one text, but {name} is a file. Give the text in quotes; "
            "`regard predict` reads files."
        )
    raise DataError(f"{argument} does not exist.")


def takes_text(recipe: BaseRecipe) -> bool:
    """Return whether a source of the task is a text, alone or with an image."""
    return find_modality(recipe.data).medium is None


def is_text(argument: str) -> bool:
    """Return whether an argument is a text itself, not the name of a file.

    Names of existing files and folders are no texts. Of the others, an argument with a slash or a
    backslash and the suffix of a file of data is the name of a missing file; so is an argument
    without spaces that has one of the two. All others are texts, also those with a tab.
    """
    if argument == STANDARD_INPUT or (argument and _exists(argument)):
        return False
    if "\t" in argument:  # a text and an image, or several texts
        return True
    has_separator = "/" in argument or "\\" in argument
    is_medium = any(modality.is_name(argument) for modality in MODALITIES.values())
    has_suffix = is_medium or Path(argument).suffix.lower() in TEXT_FILES
    if any(map(str.isspace, argument)):
        return not (has_separator and has_suffix)
    return not (has_separator or has_suffix)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # Names may be too long for the file system.
        return False
