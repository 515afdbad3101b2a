"""Text for terminals: control characters of data are replaced, since a terminal would obey them."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, TextIO, cast

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

# Control characters but line ends and tabs, and surrogates, which cannot be encoded.
_HARMFUL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: object) -> str:
    """Return a value as one line of text that is safe in a terminal and in XML.

    Control characters could move the cursor or break the page, and lone surrogates cannot be
    encoded; each becomes a replacement character. Line breaks and tabs become spaces.
    """
    return "".join(map(_clean_character, str(text)))


def clean_lines(text: str) -> str:
    """Return text without control characters, except line ends and tabs."""
    return _HARMFUL.sub(REPLACEMENT, text.replace("\r", " "))


def _clean_character(character: str) -> str:
    if character in "\n\t\r":
        return " "
    # Cc: control; Cs: surrogate; Cn: unassigned, including U+FFFE and U+FFFF, invalid in XML.
    is_harmful = unicodedata.category(character) in ("Cc", "Cs", "Cn")
    return REPLACEMENT if is_harmful else character


class CleanStream:
    """A terminal to which all code prints text without control characters.

    Code that sends its own control sequences, for colours or progress lines, cleans the text in
    between and writes to `unfiltered` of the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        """Write text; its control characters are replaced."""
        self.unfiltered.write(clean_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


def filtered(stream: TextIO) -> TextIO:
    """Return the stream of a terminal so that all text is cleaned; other streams as they are.

    Files and pipes get the bytes of file names and texts unchanged.
    """
    return cast(TextIO, CleanStream(stream)) if stream.isatty() else stream


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream below a `CleanStream`; any other stream as it is."""
    return stream.unfiltered if isinstance(stream, CleanStream) else stream
