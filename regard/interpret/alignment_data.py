"""Sentence pairs and gold links for word alignments: `src ||| tgt` lines and Pharaoh files."""

from itertools import chain
from pathlib import Path

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.example import Example
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.interpret.alignment import Gold
from regard.metrics.text.alignment import parse_pharaoh

SEPARATOR = "|||"


def read_separated(paths: tuple[str, ...]) -> list[Example] | None:
    """Read a file of `source ||| target` lines; None if the data is something else.

    Every line is a pair, also one with an empty side, since gold links count lines.
    """
    if len(paths) != 1 or paths[0] == STANDARD_INPUT or not Path(paths[0]).is_file():
        return None
    (path,) = paths
    if Path(path.lower().removesuffix(".gz")).suffix in (".tsv", ".csv", ".jsonl", ".json"):
        return None
    lines = read_lines(path)
    first = next(lines, "")
    if SEPARATOR not in first:
        return None
    examples = []
    for number, line in enumerate(chain([first], lines), start=1):
        source, separator, target = line.partition(SEPARATOR)
        if not separator:
            raise DataError(
                f"{path}, line {number:,}, must be 'source {SEPARATOR} target', as line 1 is, but "
                f"has no '{SEPARATOR}'."
            )
        examples.append(Example(source.strip(), target.strip()))
    return examples


def read_gold(path: str, offset: int | None = None) -> Gold:
    """Read gold links, `.gz` or not: `3-4` is sure, `3p4` is possible.

    Args:
        path: File with one line per pair.
        offset: Index of the first word, 0 or 1. If not given, it is 1 if no link has the index 0.
    """
    if offset not in (None, 0, 1):
        raise DataError(f"`--gold-offset` must be 0 or 1, but is {offset}.")
    lines = list(read_lines(path))
    sure, possible = parse_pharaoh(lines, file_name(path))
    if offset is None:
        offset = int(all(0 not in link for pair in possible for link in pair))
        if offset:
            logger.info("%s: words are counted from 1, as no link has the index 0.", path)
    if offset:
        sure, possible = parse_pharaoh(lines, file_name(path), offset=offset)
    return Gold(sure, possible)
