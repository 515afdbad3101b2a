"""Plain texts: files, and data sets by name, as lines that put side by side give the exact text.

A line is an `Example` whose `source` ends in its line end, so that blank lines, blanks at the
ends of lines and a last line without an end are kept.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.download import local_folder
from regard.data.datasets.loading import Parts, check_argument
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.lines import BYTE_ORDER_MARK, decode, file_name, read_bytes

FOLDER = "lm_text"
"""Where `REGARD_DATA` holds texts."""

HELD_OUT = 0.05
"""Share of a text at its end that is held out for the test, and as much before it to validate."""


def read_text(path: str | Path) -> list[Example]:
    """Read a text file, plain or `.gz`, or `-` for standard input, line by line."""
    name = file_name(path)
    text = decode(read_bytes(path).removeprefix(BYTE_ORDER_MARK), name)
    if not text.strip():
        raise DataError(f"{name} is empty: there is no text in it.")
    return to_lines(text)


def to_lines(text: str) -> list[Example]:
    """Cut a text after each line end; the lines put side by side are the text."""
    return [Example(line) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]


def to_text(lines: Sequence[Example]) -> str:
    """Put lines side by side."""
    return "".join(line.source for line in lines)


def split_text(lines: Sequence[Example]) -> Splits:
    """Hold out the end of a text: its last twentieth for the test, the one before to validate.

    Cut between lines, and in the order of the text: what is held out comes after all that is
    learned from.
    """
    if len(lines) < 20:
        raise DataError(
            f"A text must have at least 20 lines to be split, but has {len(lines)}. "
            "Give more text, or validation and test files."
        )
    num_characters = sum(len(line.source) for line in lines)
    bounds = [(1 - 2 * HELD_OUT) * num_characters, (1 - HELD_OUT) * num_characters]
    parts: Parts = ([], [], [])
    seen = 0
    for number, line in enumerate(lines):
        # However long the lines are, the last two of them are held out.
        part = max(sum(seen >= bound for bound in bounds), 3 - (len(lines) - number))
        parts[max(part, 0)].append(line)
        seen += len(line.source)
    return Splits(*parts, f"split in the order of the text: {sizes(parts)}")


def sizes(parts: Sequence[Sequence[Example]]) -> str:
    """Say how many characters the three parts of a text have."""
    train, valid, test = (f"{len(to_text(part)):,}" for part in parts)
    return f"{train} train, {valid} valid, {test} test characters"


def load_shakespeare(argument: str, seed: int) -> Splits:
    """Return Karpathy's tiny Shakespeare; the last tenth of its characters is held out.

    The same tenth serves to validate and to test, as in the figures that are published on it.
    """
    check_argument(argument, "shakespeare")
    path = _local("tinyshakespeare.txt.gz", "shakespeare")
    text = to_text(read_text(path))
    # By characters, as everybody cuts it; this falls into the middle of a line.
    end = int(0.9 * len(text))
    train, held_out = to_lines(text[:end]), to_lines(text[end:])
    parts = (train, held_out, held_out)
    note = f"{path}, the last tenth both to validate and to test: {sizes(parts)}"
    return Splits(*parts, note)


def load_wikitext2(argument: str, seed: int) -> Splits:
    """Return WikiText-2 (Merity et al. 2017) with its official split."""
    check_argument(argument, "wikitext2")
    train, valid, test = parts = [
        read_text(_local(f"wikitext2_{part}.txt.gz", "wikitext2"))
        for part in ("train", "valid", "test")
    ]
    return Splits(train, valid, test, f"official split of WikiText-2: {sizes(parts)}")


def _local(name: str, dataset: str) -> Path:
    path = local_folder(FOLDER) / name
    if not path.is_file():
        raise DataError(
            f"The data set '{dataset}' is not downloaded by itself. Set REGARD_DATA to a folder "
            f"in which {FOLDER}/{name} is its text."
        )
    return path
