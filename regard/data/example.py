"""One raw item, as it stands in a file."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Alignment = tuple[tuple[int, int], ...]
"""Links between words, `(source position, target position)`, both counted from 0."""


@dataclass(frozen=True, slots=True)
class Example:
    """One raw item as it stands in a file."""

    source: Any
    """What goes in: a sentence, or several as a tuple; later also an image or a recording."""
    target: str = ""
    """What should come out; empty where it is not known."""
    references: tuple[str, ...] = ()
    """Further right answers beside `target`."""
    alignment: Alignment | None = None
    """Gold links between the words of both sides, where somebody knows them; words and
    punctuation marks count one by one, as `split_words` splits them.
    Where the source is several texts, each counts as one."""
    tags: tuple[str, ...] = ()
    """Names of the phenomena in this example, for error analysis."""


Numbered = Iterator[tuple[int, Example]]
"""Examples, each with the number of its line."""
