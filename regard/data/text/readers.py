"""Readers of aligned files, TSV, CSV and JSON lines as examples, and a writer of JSON lines."""

import hashlib
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Literal

from regard.core.errors import ConfigError, DataError
from regard.core.files import sha256, write_text
from regard.core.logging import logger
from regard.core.progress import count_each, counting, show_message
from regard.data.corpus import Corpus, corpora_folder
from regard.data.example import Example, Numbered
from regard.data.text.columns import (
    SOURCE,
    SOURCES,
    as_nonempty_source,
    as_roles,
    as_source,
    check_columns,
    find_titles,
    read_csv_pairs,
    read_tsv_pairs,
    read_two_columns,
)
from regard.data.text.json_lines import read_json_lines
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.tables import NUM_INSPECTED

Format = Callable[[str, Iterable[str]], Numbered]
"""Function from a file's name and lines to examples with line numbers."""

LARGE_BYTES = 16 << 20
"""Size of text files from which their examples are kept on disk, not in memory."""

_GZIP_RATIO = 4
"""Typical size of a text relative to that of the compressed file."""

_CORPUS_FORMAT = 1
"""Version of the examples in the cache; another number invalidates them."""

OnError = Literal["stop", "skip"]
"""Treatment of lines that hold no pair: raise an error with their number, or skip them."""

ON_ERROR: dict[str, OnError] = {"stop": "stop", "skip": "skip"}
"""Values of `on_error` by name."""


def read_examples(
    path: str | Path,
    second: str | Path | None = None,
    *,
    formats: Mapping[str, Format] | None = None,
    columns: Sequence[str] = (),
    on_error: OnError = "stop",
) -> list[Example]:
    """Read all pairs of a file, or of two line-aligned files.

    The suffix `.csv` or `.jsonl`, with or without `.gz`, determines the format; any other file is
    read as TSV. `-` is standard input: JSON lines if it starts with `{`, else TSV. Pairs with an
    empty side are skipped and counted in a warning.

    Args:
        path: File of pairs, or of sources if there is a second file.
        second: File of targets.
        formats: Reader of each format, by suffix; if not given, any TSV, CSV and JSON lines.
        columns: Content of each column of a TSV or CSV file: `source`, `target` or `-` (neither).
            Several sources become a tuple, of which some may be empty; several targets become one
            target and further references. `sources` stands for all remaining columns, without the
            empty ones. In JSON lines, several sources mean that a list of texts stays a list.
            Or titles of columns, and keys of JSON lines: those of the sources and, as the last one,
            that of the target. If not given, columns titled source and target are taken, or else
            the first two that hold texts, not ids or metadata.
        on_error: Whether lines that hold no pair, such as one without a tab, raise an error with
            their number, or are skipped and counted in a warning.
    """
    return list(stream_examples(path, second, formats=formats, columns=columns, on_error=on_error))


def stream_examples(
    path: str | Path,
    second: str | Path | None = None,
    *,
    formats: Mapping[str, Format] | None = None,
    columns: Sequence[str] = (),
    on_error: OnError = "stop",
) -> Iterator[Example]:
    """Yield the pairs that `read_examples` returns, without keeping all of them in memory.

    Lines that hold no pair raise an error after the last line, so that it states their number.
    """
    if columns:
        check_columns(columns)
        if second is not None:
            raise ConfigError(
                f"`columns` are those of one file, but there are two: {path} and {second}. "
                "Leave `columns` out, or put the files side by side: `paste SOURCES TARGETS`."
            )
    errors: dict[int, DataError] = {}
    name, num_lines = file_name(path), 0
    # Named columns may be empty, such as a missing context; otherwise a tuple is a pair of texts.
    usable = _Usable(name, has_text=any if columns else all)
    with counting(f"Reading {name}") as advance:

        def count(num: int) -> None:
            nonlocal num_lines
            num_lines += num
            advance(num)

        lines = count_each(read_lines(path, errors=errors), count)
        first = list(islice(lines, NUM_INSPECTED))
        if not first:
            raise DataError(f"{name} is empty.")
        lines = chain(first, lines)
        if second is None:
            formats = formats or _by_columns(columns)
            numbered = formats[find_suffix(path, first)](name, lines)
        else:
            targets = read_lines(second, errors=errors)
            numbered = _read_aligned((name, lines), (file_name(second), targets))
        for number, example in numbered:
            if isinstance(example, DataError):
                errors.setdefault(number, example)
            elif number not in errors and usable.accepts(number, example):
                yield example
    if errors:
        _report_errors(name, errors, num_lines=num_lines, on_error=on_error)
    usable.report()


def read_corpus(
    path: str | Path,
    second: str | Path | None = None,
    *,
    formats: Mapping[str, Format] | None = None,
    columns: Sequence[str] = (),
    on_error: OnError = "stop",
    content: str = "",
) -> Sequence[Example]:
    """Read examples as `read_examples` does, but large files as a corpus in the cache.

    Args:
        path: As for `read_examples`, like the other arguments.
        second: File of targets.
        formats: Reader of each format.
        columns: Content of each column.
        on_error: Treatment of lines that hold no pair.
        content: Name of the `formats`, if they are given.
    """
    read = partial(
        stream_examples, path, second, formats=formats, columns=columns, on_error=on_error
    )
    settings = f"{list(columns)} {on_error}{content and f' {content}'}"
    corpus = open_large((path, second), read, settings=settings)
    return list(read()) if corpus is None else corpus


def open_large(
    paths: Sequence[str | Path | None], read: Callable[[], Iterable[Example]], *, settings: str
) -> Corpus | None:
    """Return the examples of large files as a corpus in the cache; None if the files are small.

    Args:
        paths: The files; None is ignored.
        read: Function that reads the examples.
        settings: Settings of the function, which identify the corpus with the files' contents.
    """
    files = [Path(path) for path in paths if path is not None]
    sizes = [*map(_text_bytes, files)]
    if not all(sizes) or sum(sizes) < LARGE_BYTES:
        return None
    title = " and ".join(map(str, files))
    with show_message(f"Checking {title}"):
        contents = [f"{''.join(file.suffixes).lower()} {sha256(file)}" for file in files]
        key = f"{_CORPUS_FORMAT} {contents} {settings}"
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        is_new = not (corpora_folder() / name).exists()
    if is_new:
        logger.info("%s is large, so its examples are kept in %s.", title, corpora_folder())
    return Corpus.open(name, read)


def _text_bytes(path: Path) -> int:
    """Return the size of a text file, estimated if it is compressed; 0 if it cannot be read."""
    if not (path.is_file() and os.access(path, os.R_OK)):
        return 0
    return path.stat().st_size * (_GZIP_RATIO if path.suffix.lower() == ".gz" else 1)


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write examples with all fields as JSON lines, which `read_examples` restores."""
    write_text(path, "".join(_to_json(example) + "\n" for example in examples))


def _by_columns(columns: Sequence[str]) -> dict[str, Format]:
    roles = as_roles(columns)
    join: Callable[[list[str]], Any] = as_source if roles.count(SOURCE) > 1 else " ".join
    if SOURCES in roles:
        join = as_nonempty_source
    return {
        ".csv": partial(read_csv_pairs, columns=columns),
        ".jsonl": partial(read_json_lines, join=join, names=find_titles(columns)),
        ".tsv": partial(read_tsv_pairs, columns=columns),
    }


def _report_errors(
    name: str, errors: Mapping[int, DataError], *, num_lines: int, on_error: OnError
) -> None:
    """Log the number of skipped lines, or raise the first error with the number of errors."""
    first = errors[min(errors)]
    if on_error == "skip":
        lines = "1 line" if len(errors) == 1 else f"{len(errors):,} lines"
        logger.warning(f"skipped {lines} of {num_lines:,} in {name} (first: {first})")
        return
    remedy = "; `--on-error skip` leaves them out" if len(errors) < num_lines else ""
    num = f"{len(errors):,} of {num_lines:,} lines"
    raise DataError(f"{first} {num} cannot be read{remedy}.")


class _Usable:
    """Selection of pairs in which both sides have text, with the number of others."""

    def __init__(self, name: str, *, has_text: Callable[[tuple[Any, ...]], bool]) -> None:
        self._name = name
        self._has_text = has_text
        self._num_usable = self._num_skipped = self._first_skipped = 0

    def accepts(self, number: int, example: Example) -> bool:
        """Return whether both sides of a pair have text, and count it."""
        source = example.source
        is_usable = bool(example.target) and self._has_text(
            source if isinstance(source, tuple) else (source,)
        )
        if is_usable:
            self._num_usable += 1
        else:
            self._first_skipped = self._first_skipped or number
            self._num_skipped += 1
        return is_usable

    def report(self) -> None:
        """Log the number of skipped pairs; raise `DataError` if no pair is usable."""
        if not self._num_usable:
            raise DataError(f"{self._name} holds no pair in which both sides have text.")
        if self._num_skipped:
            pairs = "1 pair" if self._num_skipped == 1 else f"{self._num_skipped:,} pairs"
            first = f"{self._name}, line {self._first_skipped:,}"
            logger.warning(f"skipped {pairs} with an empty side (first: {first})")


def _read_aligned(source: tuple[str, Iterable[str]], target: tuple[str, Iterable[str]]) -> Numbered:
    (source_name, sources), (target_name, targets) = source, target
    sources, targets = iter(sources), iter(targets)
    for number, pair in enumerate(zip_longest(sources, targets), start=1):
        one, other = pair
        if one is None or other is None:
            num_sources, num_targets = (
                number - 1 if line is None else number + sum(1 for _ in rest)
                for line, rest in zip(pair, (sources, targets), strict=True)
            )
            raise DataError(
                f"{source_name} has {num_sources:,} lines but {target_name} has {num_targets:,}. "
                "Pair files must have equal length."
            )
        yield number, Example(one.strip(), other.strip())


def find_suffix(path: str | Path, lines: Sequence[str]) -> str:
    """Return the suffix of a file's format: `.csv`, `.jsonl` or `.tsv`, also for other files.

    Args:
        path: The file; standard input with lines that start with `{` is `.jsonl`.
        lines: The first lines.
    """
    if str(path) == STANDARD_INPUT:
        first = next((line for line in lines if line.strip()), "")
        return ".jsonl" if first.lstrip().startswith("{") else ".tsv"
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix
    if suffix == ".json" and lines and lines[0].lstrip().startswith("["):
        raise DataError(
            f"{path} is a JSON list, but must have one object per line. Convert it: "
            f"`jq -c '.[]' {shlex.quote(str(path))} > {shlex.quote(Path(path).stem)}.jsonl`."
        )
    suffix = ".jsonl" if suffix in (".json", ".ndjson") else suffix
    return suffix if suffix in (".csv", ".jsonl") else ".tsv"


def _to_json(example: Example) -> str:
    value: dict[str, Any] = {"source": example.source, "target": example.target}
    if example.references:
        value["target"] = [example.target, *example.references]
    if example.alignment is not None:
        value["alignment"] = example.alignment
    if example.tags:
        value["tags"] = example.tags
    return json.dumps(value, ensure_ascii=False)


TWO_COLUMNS: dict[str, Format] = {
    ".csv": read_csv_pairs,
    ".jsonl": read_json_lines,
    ".tsv": read_two_columns,
}
"""Formats of files in which the first two columns of TSV are known to be source and target."""
