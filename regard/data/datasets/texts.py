"""Plain text from files and built-in data sets, as lines whose concatenation is the exact text.

The `source` of an example is a line with its line break, so that empty lines, trailing whitespace
and a missing line break at the end are preserved.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.download import local_folder
from regard.data.datasets.loading import Parts, check_argument, missing_files
from regard.data.example import Example
from regard.data.formats import HEAD_BYTES, check_is_text
from regard.data.splits import Splits
from regard.data.text.lines import BYTE_ORDER_MARK, decode, file_name, read_bytes

FOLDER = "lm_text"
"""Folder of the texts in `REGARD_DATA`."""

HELD_OUT = 0.05
"""Share of a text held out at its end for the test, and the same share before it to validate."""


def read_text(path: str | Path) -> list[Example]:
    """Read a text file, plain or `.gz`, or `-` for standard input, line by line."""
    name = file_name(path)
    data = read_bytes(path)
    check_is_text(name, data[:HEAD_BYTES])
    text = decode(data.removeprefix(BYTE_ORDER_MARK), name)
    if not text.strip():
        raise DataError(f"{name} is empty: it contains no text.")
    return to_lines(text)


def to_lines(text: str) -> list[Example]:
    """Split a text after each line break; the concatenation of the lines is the text."""
    return [Example(line) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]


def to_text(lines: Sequence[Example]) -> str:
    """Concatenate lines."""
    return "".join(line.source for line in lines)


def split_text(lines: Sequence[Example]) -> Splits:
    """Hold out the last 5 % of a text for the test and the 5 % before for validation.

    The text is cut between lines. Held-out text follows all training text.
    """
    if len(lines) < 20:
        raise DataError(
            f"A text must have at least 20 lines to be split, but has {len(lines)}. "
            "Give more text, or validation and test files."
        )
    num_characters = sum(len(line.source) for line in lines)
    bounds = [(1 - 2 * HELD_OUT) * num_characters, (1 - HELD_OUT) * num_characters]
    parts: Parts = ([], [], [])
    num_before = 0
    for number, line in enumerate(lines):
        # At least one line for validation and one for the test, even if lines are very long.
        part = max(sum(num_before >= bound for bound in bounds), 3 - (len(lines) - number))
        parts[max(part, 0)].append(line)
        num_before += len(line.source)
    return Splits(*parts, f"split in the order of the text: {format_sizes(parts)}")


def format_sizes(parts: Sequence[Sequence[Example]]) -> str:
    """Format the number of characters of the three splits of a text."""
    train, valid, test = (f"{len(to_text(part)):,}" for part in parts)
    return f"{train} train, {valid} valid, {test} test characters"


def load_shakespeare(argument: str, seed: int) -> Splits:
    """Load tiny Shakespeare (Karpathy 2015); the last tenth of its characters is held out.

    The same tenth is used for validation and for the test, as in published results.
    """
    check_argument(argument, "shakespeare")
    (path,) = _find_files("shakespeare", "tinyshakespeare.txt.gz")
    text = to_text(read_text(path))
    # Split by characters, as in published results; the cut is in the middle of a line.
    end = int(0.9 * len(text))
    train, held_out = to_lines(text[:end]), to_lines(text[end:])
    parts = (train, held_out, held_out)
    note = f"{path}, the last tenth both to validate and to test: {format_sizes(parts)}"
    return Splits(*parts, note)


def load_wikitext2(argument: str, seed: int) -> Splits:
    """Load WikiText-2 (Merity et al. 2017) with its official split."""
    check_argument(argument, "wikitext2")
    names = (f"wikitext2_{part}.txt.gz" for part in ("train", "valid", "test"))
    train, valid, test = parts = [read_text(path) for path in _find_files("wikitext2", *names)]
    return Splits(train, valid, test, f"official split of WikiText-2: {format_sizes(parts)}")


def _find_files(dataset: str, *names: str) -> list[Path]:
    paths = [local_folder(FOLDER) / name for name in names]
    if not all(path.is_file() for path in paths):
        raise missing_files(dataset, *(f"{FOLDER}/{name}" for name in names))
    return paths
