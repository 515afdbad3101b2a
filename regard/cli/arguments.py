"""Separate files from overrides among the arguments of a command."""

import json
import re
from collections.abc import Collection

from regard.core.errors import ConfigError

_OVERRIDE = re.compile(r"[A-Za-z_]\w*(\.\w+)*=")


def split_arguments(
    arguments: list[str], *, max_paths: int, default: str | None = None
) -> tuple[list[str], list[str]]:
    """Split arguments into files or data set names and overrides such as `train.seed=2`.

    Args:
        arguments: Arguments in any order.
        max_paths: Maximum number of files.
        default: File to use if none is given; without it, a file is required.
    """
    paths, overrides = split_overrides(arguments, max_paths=max_paths)
    if paths:
        return paths, overrides
    if default is None:
        raise ConfigError("No data was given. Name a data set or a file before the settings.")
    return [default], overrides


def split_training_arguments(
    arguments: list[str], *, columns: str | None, seed: int | None
) -> tuple[list[str], list[str]]:
    """Split arguments into one or two files or data set names and overrides of a recipe.

    Args:
        arguments: Arguments in any order.
        columns: Value of `--columns`, which is an override of `data.columns`.
        seed: Value of `--seed`, which is an override of `seed`.
    """
    paths, overrides = split_arguments(arguments, max_paths=2)
    if columns is not None:
        overrides.append(f"data.columns={json.dumps(split_columns(columns))}")
    if seed is not None:
        overrides.append(f"seed={seed}")
    return paths, overrides


def split_search_arguments(
    arguments: list[str] | None, *, max_paths: int, seed: int | None = None
) -> tuple[list[str], list[str]]:
    """Split arguments into files or texts, if there are any, and overrides of the search.

    Args:
        arguments: Arguments in any order; None if there are none.
        max_paths: Maximum number of files; where it is 1, the file may be a text.
        seed: Value of `--seed`, which is an override of `search.seed`.
    """
    paths, overrides = split_overrides(arguments or [], max_paths=max_paths)
    return paths, search_overrides(overrides, seed=seed)


def search_overrides(
    overrides: list[str] | None, *, beam: int | None = None, seed: int | None = None
) -> list[str]:
    """Return overrides of the search with the values of `--beam` and `--seed`, if given."""
    for override in overrides or []:
        if "." not in override.partition("=")[0]:
            raise ConfigError(
                f"'{override}' must have the form search.key=value. A text with an equals sign can "
                "be given on standard input."
            )
    shorthands = {"search.beams": beam, "search.seed": seed}
    given = [f"{name}={value}" for name, value in shorthands.items() if value is not None]
    return [*(overrides or []), *given]


def split_overrides(arguments: list[str], *, max_paths: int) -> tuple[list[str], list[str]]:
    """Split arguments into files or texts, if there are any, and overrides.

    Args:
        arguments: Arguments in any order.
        max_paths: Maximum number of files; where it is 1, the file may be a text.
    """
    overrides = [argument for argument in arguments if is_override(argument)]
    paths = [argument for argument in arguments if not is_override(argument)]
    if len(paths) > max_paths:
        files = "1 file" if max_paths == 1 else f"{max_paths} files"
        quotes = "Put a sentence in quotes. " if max_paths == 1 else ""
        raise ConfigError(
            f"At most {files} can be given, but there are {len(paths)}: {', '.join(paths)}. "
            f"{quotes}Settings have the form section.key=value."
        )
    return paths, overrides


def overrides_last(arguments: list[str], *, options_with_value: Collection[str]) -> list[str]:
    """Return the arguments of a command with its overrides at the end, in their order.

    Args:
        arguments: Arguments and options.
        options_with_value: Options whose value is the next argument, which stays where it is.
    """
    others, overrides = [], []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            others += [argument, *remaining]
        elif argument in options_with_value:
            others += [argument, *([value] if (value := next(remaining, None)) is not None else [])]
        elif is_override(argument):
            overrides.append(argument)
        else:
            others.append(argument)
    return [*others, *overrides]


def is_override(argument: str) -> bool:
    """Return whether an argument is an override: a dotted name, then an equals sign.

    Not paths (`./a=b.tsv`), data sets (`fsdd:speaker=theo`) and sentences (`two = 2`).
    """
    return _OVERRIDE.match(argument) is not None


def split_columns(columns: str | None) -> tuple[str, ...] | None:
    """Split the roles of columns, such as `source, target,-`; None if there are none."""
    if columns is None:
        return None
    return tuple(name.strip() for name in columns.split(","))
