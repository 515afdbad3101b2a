"""Lookup of table entries by name, and of objects by import path."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from regard.core.errors import ConfigError
from regard.core.records import shown_name

Value = TypeVar("Value")

MIN_PREFIX = 3
"""Minimum number of letters of a name that is taken for the beginning of another."""


def pick(table: Mapping[str, Value], name: str, what: str) -> Value:
    """Return the entry `name` of a table, or raise `ConfigError` with the known names.

    Args:
        table: The table.
        name: Name of the entry.
        what: Name of the setting, such as `score`.
    """
    if name not in table:
        name = shown_name(name)
        raise ConfigError(
            f"`{what}` must be {one_of(table)}, but is '{name}'.{did_you_mean(name, table)}"
        )
    return table[name]


def resolve(dotted: str) -> Any:
    """Import an object.

    Args:
        dotted: Import path `package.module:name`, for entries that are slow to import.
    """
    module, _, name = dotted.partition(":")
    return getattr(import_module(module), name)


def on_demand(dotted: str) -> Callable[..., Any]:
    """Return a function that is imported on its first call.

    Args:
        dotted: Import path `package.module:name`, as in `resolve`.
    """
    return partial(_call, dotted)


def _call(dotted: str, *arguments: Any) -> Any:
    return resolve(dotted)(*arguments)


def one_of(names: Iterable[str]) -> str:
    """Return the allowed names as `one of 'a', 'b'`."""
    return "one of " + ", ".join(f"'{name}'" for name in names)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` with the most similar name, or an empty string."""
    matches = nearest(name, names)
    return f" Did you mean '{matches[0]}'?" if matches else ""


def nearest(name: str, names: Iterable[str], *, num: int = 1) -> list[str]:
    """Return the most similar names, the best first; none if no name is similar.

    If none is similar as a whole, those that begin with `name` are: `conv` → `convolution`.
    """
    known = list(names)
    close = difflib.get_close_matches(name, known, n=num)
    if close or len(name) < MIN_PREFIX:
        return close
    return [other for other in known if other.startswith(name)][:num]


def nearest_names(name: str, names: Iterable[str], command: str) -> str:
    """Return the three most similar names and the command that lists all, for messages."""
    quoted = ", ".join(f"'{match}'" for match in nearest(name, names, num=3))
    return f"{f'Nearest: {quoted}. ' if quoted else ''}`{command}` lists all."


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article: `a red square`, `an orange star`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
