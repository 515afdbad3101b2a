"""Plain text from files and built-in data sets, as lines whose concatenation is the exact text.

The `source` of an example is a line with its line break, so that empty lines, trailing whitespace
and a missing line break at the end are preserved.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.core.progress import counting
from regard.data.corpus import Corpus, without_rows
from regard.data.datasets.download import local_folder
from regard.data.datasets.loading import check_argument, missing_files
from regard.data.example import Example
from regard.data.formats import HEAD_BYTES, check_is_text
from regard.data.splits import Splits
from regard.data.text.lines import BYTE_ORDER_MARK, decode, file_name, read_bytes, read_raw_lines
from regard.data.text.readers import open_large

FOLDER = "lm_text"
"""Folder of the texts in `REGARD_DATA`."""

HELD_OUT = 0.05
"""Share of a text held out at its end for the test, and the same share before it to validate."""


MAX_HELD_OUT = 5_000_000
"""Maximum number of characters of the test text, and of the validation text."""


def read_text(path: str | Path) -> list[Example]:
    """Read a text file, plain or `.gz`, or `-` for standard input, line by line."""
    name = file_name(path)
    data = read_bytes(path)
    check_is_text(name, data[:HEAD_BYTES])
    text = decode(data.removeprefix(BYTE_ORDER_MARK), name)
    if not text.strip():
        raise DataError(f"{name} is empty: it contains no text.")
    return to_lines(text)


def read_text_corpus(path: str | Path) -> Sequence[Example]:
    """Read a text as `read_text` does, but a large file as a corpus in the cache."""
    corpus = open_large((path,), partial(stream_text, path), settings="text")
    return read_text(path) if corpus is None else corpus


def stream_text(path: str | Path) -> Iterator[Example]:
    """Yield the lines that `read_text` returns, without keeping all of them in memory."""
    name, has_text = file_name(path), False
    with counting(f"Reading {name}") as advance:
        for number, raw in enumerate(read_raw_lines(path), start=1):
            raw = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
            line = decode(raw, f"{name}, line {number:,},")
            has_text = has_text or not line.isspace()
            if line:
                yield Example(line)
            advance(1)
    if not has_text:
        raise DataError(f"{name} is empty: it contains no text.")


def to_lines(text: str) -> list[Example]:
    """Split a text after each line break; the concatenation of the lines is the text."""
    return [Example(line) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]


def to_text(lines: Sequence[Example]) -> str:
    """Concatenate lines."""
    return "".join(line.source for line in lines)


def split_text(lines: Sequence[Example]) -> Splits:
    """Hold out the last 5 % of a text for the test and the 5 % before for validation.

    Each of both has at most `MAX_HELD_OUT` characters. The text is cut between lines. Held-out text
    follows all training text.
    """
    if len(lines) < 20:
        raise DataError(
            f"A text must have at least 20 lines to be split, but has {len(lines)}. "
            "Give more text, or validation and test files."
        )
    if isinstance(lines, Corpus):
        lengths = lines.array("lengths", _line_lengths)
    else:
        lengths = _line_lengths(lines)
    ends = np.cumsum(lengths, dtype=np.int64)
    num_characters = int(ends[-1])
    shares = (max((1 - num * HELD_OUT), 1 - num * MAX_HELD_OUT / num_characters) for num in (2, 1))
    # A line belongs to the part in which it starts, and each part has at least one line, even if
    # lines are very long.
    valid, test = (
        min(int(np.searchsorted(ends, share * num_characters)) + 1, len(lines) - num)
        for share, num in zip(shares, (2, 1), strict=True)
    )
    train = without_rows(lines, np.arange(valid, len(lines)))
    parts = np.diff([0, *ends[[valid - 1, test - 1, -1]].tolist()])
    note = f"split in the order of the text: {_format_sizes(parts.tolist())}"
    return Splits(train, [*lines[valid:test]], [*lines[test:]], note)


def _line_lengths(lines: Sequence[Example]) -> NDArray[np.uint32]:
    """Return the number of characters of each line."""
    return np.fromiter((len(line.source) for line in lines), np.uint32, len(lines))


def format_sizes(parts: Sequence[Sequence[Example]]) -> str:
    """Format the number of characters of the three splits of a text."""
    return _format_sizes([len(to_text(part)) for part in parts])


def _format_sizes(sizes: Sequence[int]) -> str:
    train, valid, test = (f"{size:,}" for size in sizes)
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
