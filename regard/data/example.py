"""`Example`: a source and a target as read from a file."""

from collections.abc import Iterator
from dataclasses import dataclass
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
