"""`Example`: a source and a target as read from a file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from regard.core.errors import DataError

Alignment = tuple[tuple[int, int], ...]
"""Links between words, `(source position, target position)`, both counted from 0."""


@dataclass(frozen=True, slots=True)
class Example:
    """A source and a target as read from a file."""

    source: Any
    """Input: a text, a tuple of texts, or the reference of an image, a recording or a video."""
    target: str = ""
    """Expected output; empty if unknown."""
    references: tuple[str, ...] = ()
    """Further correct outputs beside `target`."""
    alignment: Alignment | None = None
    """Gold links between source and target words, if known. Words and punctuation marks are
    counted as `split_words` splits them; if the source is several texts, each counts as one."""
    tags: tuple[str, ...] = ()
    """Names of the phenomena in this example, for error analysis."""


Numbered = Iterator[tuple[int, Example | DataError]]
"""Line numbers with examples, or with the errors of lines that hold none."""


def require_list(values: object, name: str) -> None:
    """Raise a `TypeError` if a single value is given in place of a list of values.

    A string is a sequence of letters, so it would otherwise be read as a list of sources.
    """
    if isinstance(values, str | bytes | PathLike | Example):
        raise TypeError(
            f"`{name}` must be a list, but is a single {type(values).__name__}. "
            f"Put it into a list: [{repr(values)[:60] if isinstance(values, str) else '…'}]."
        )


def require_examples(examples: Sequence[Any]) -> None:
    """Raise a `TypeError` unless all values are examples."""
    require_list(examples, "examples")
    for example in examples:
        if not isinstance(example, Example):
            raise TypeError(
                "`examples` must hold `regard.Example(source, target)`, but holds "
                f"{example!r:.60} of type {type(example).__name__}."
            )
