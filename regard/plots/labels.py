"""Words as labels: safe to print, safe in markup, not too long."""

import html
import unicodedata
from typing import NewType

from rich.cells import cell_len, set_cell_size

Markup = NewType("Markup", str)
"""HTML or SVG that is safe to put into a page: all foreign text in it is escaped."""

MAX_WIDTH = 24
"""Terminal cells of the longest label; what is longer is cut."""


def clean(text: object) -> str:
    """Write a value as text that no terminal and no XML reader stumbles over.

    Control characters could move the cursor or break the page, and lone surrogates cannot be
    saved; each becomes a replacement mark. Line breaks and tabs become blanks.
    """
    return "".join(map(_clean_character, str(text)))


def escape(text: object) -> Markup:
    """Write a value as text inside HTML or SVG, attributes included."""
    return Markup(html.escape(clean(text)))


def shorten(word: str, width: int) -> str:
    """Cut a word to a number of terminal cells; an ellipsis marks the cut."""
    if cell_len(word) <= width:
        return word
    return set_cell_size(word, width - 1).rstrip() + "…"


def _clean_character(character: str) -> str:
    if character in "\n\t\r":
        return " "
    # Cc: control; Cs: surrogate; Cn: unassigned, with U+FFFE and U+FFFF, which XML forbids.
    is_harmful = unicodedata.category(character) in ("Cc", "Cs", "Cn")
    return "\N{REPLACEMENT CHARACTER}" if is_harmful else character


if __name__ == "__main__":
    print(shorten("Donaudampfschifffahrtsgesellschaft", MAX_WIDTH))
    print(escape("<b> \x1b[2J & co."))
