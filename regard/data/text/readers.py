"""Readers of aligned files, TSV, CSV and JSON lines as examples, and a writer of JSON lines."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from regard.core.errors import ConfigError, DataError
from regard.core.files import write_text
from regard.core.logging import logger
from regard.core.progress import track
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

Format = Callable[[str, list[str]], Numbered]
"""Function from a file's name and lines to examples with line numbers."""

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
    if columns:
        check_columns(columns)
        if second is not None:
            raise ConfigError(
                f"`columns` are those of one file, but there are two: {path} and {second}. "
                "Leave `columns` out, or put the files side by side: `paste SOURCES TARGETS`."
            )
    errors: dict[int, DataError] = {}
    name, lines = file_name(path), _read_all(path, errors)
    if not lines:
        raise DataError(f"{name} is empty.")
    if second is None:
        formats = formats or _by_columns(columns)
        numbered = formats[find_suffix(path, lines)](name, lines)
    else:
        targets = _read_all(second, errors)
        numbered = _read_aligned((name, lines), (file_name(second), targets))
    examples: list[tuple[int, Example]] = []
    for number, example in numbered:
        if isinstance(example, DataError):
            errors.setdefault(number, example)
        elif number not in errors:
            examples.append((number, example))
    if errors:
        _report_errors(name, errors, num_lines=len(lines), on_error=on_error)
    # Named columns may be empty, such as a missing context; otherwise a tuple is a pair of texts.
    return _keep_usable(name, examples, has_text=any if columns else all)


def _read_all(path: str | Path, errors: dict[int, DataError]) -> list[str]:
    return list(track(read_lines(path, errors=errors), f"Reading {file_name(path)}"))


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


def _keep_usable(
    name: str, numbered: Iterable[tuple[int, Example]], has_text: Callable[[tuple[Any, ...]], bool]
) -> list[Example]:
    examples: list[Example] = []
    skipped: list[int] = []
    for number, example in numbered:
        source = example.source
        if has_text(source if isinstance(source, tuple) else (source,)) and example.target:
            examples.append(example)
        else:
            skipped.append(number)
    if not examples:
        raise DataError(f"{name} holds no pair in which both sides have text.")
    if skipped:
        pairs = "1 pair" if len(skipped) == 1 else f"{len(skipped):,} pairs"
        first = f"{name}, line {skipped[0]:,}"
        logger.warning(f"skipped {pairs} with an empty side (first: {first})")
    return examples


def _read_aligned(source: tuple[str, list[str]], target: tuple[str, list[str]]) -> Numbered:
    (source_name, sources), (target_name, targets) = source, target
    if len(sources) != len(targets):
        raise DataError(
            f"{source_name} has {len(sources):,} lines but {target_name} has {len(targets):,}. "
            "Pair files must have equal length."
        )
    for number, (one, other) in enumerate(zip(sources, targets, strict=True), start=1):
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
