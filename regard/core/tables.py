"""Lookup of table rows by name, and of objects by dotted name."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from regard.core.errors import ConfigError

Value = TypeVar("Value")


def pick(table: Mapping[str, Value], name: str, what: str) -> Value:
    """Return the row called `name`, or raise an error with the known names.

    Args:
        table: A literal table of parts.
        name: The name of the row.
        what: What the rows are, as a setting's name: `score`, `tokenizer`.
    """
    if name not in table:
        raise ConfigError(f"`{what}` must be {one_of(table)}, but is '{name}'.{near(name, table)}")
    return table[name]


def resolve(dotted: str) -> Any:
    """Import an object on first use.

    Args:
        dotted: `package.module:name`, as tables hold rows that are costly to import.
    """
    module, _, name = dotted.partition(":")
    return getattr(import_module(module), name)


def on_demand(dotted: str) -> Callable[..., Any]:
    """Return a function that is imported when it is first called.

    Args:
        dotted: `package.module:name`, as in `resolve`.
    """
    return partial(_call, dotted)


def _call(dotted: str, *arguments: Any) -> Any:
    return resolve(dotted)(*arguments)


def one_of(names: Iterable[str]) -> str:
    """Write the allowed names as `one of 'a', 'b'`."""
    return "one of " + ", ".join(f"'{name}'" for name in names)


def near(name: str, names: Iterable[str]) -> str:
    """Write ` Did you mean 'x'?` for the nearest name, or nothing."""
    matches = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean '{matches[0]}'?" if matches else ""


def with_article(noun: str) -> str:
    """Write a noun as of something new: `a red square`, `an orange star`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
