"""Readers of aligned files, TSV, CSV and JSON lines as examples, and a writer of JSON lines."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from regard.core.errors import ConfigError, DataError
from regard.core.files import write_text
from regard.core.logging import logger
from regard.data.example import Alignment, Example, Numbered
from regard.data.text.columns import (
    SOURCE,
    SOURCES,
    as_nonempty_source,
    as_source,
    check_columns,
    one_line,
    read_csv_columns,
    read_rows,
    read_tsv_columns,
)
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines

Format = Callable[[str, list[str]], Numbered]
"""Function from a file's name and lines to examples with line numbers."""


def read_examples(
    path: str | Path,
    second: str | Path | None = None,
    *,
    formats: Mapping[str, Format] | None = None,
    columns: Sequence[str] = (),
) -> list[Example]:
    """Read all pairs of a file, or of two line-aligned files.

    The suffix `.csv` or `.jsonl`, with or without `.gz`, determines the format; any other file is
    read as TSV. `-` is standard input: JSON lines if it starts with `{`, else TSV. Pairs with an
    empty side are skipped and counted in a warning.

    Args:
        path: File of pairs, or of sources if there is a second file.
        second: File of targets.
        formats: Reader of each format, by suffix; `FORMATS` if not given.
        columns: Content of each column of a TSV or CSV file: `source`, `target` or `-` (neither).
            Several sources become a tuple, of which some may be empty; several targets become one
            target and further references. `sources` stands for all remaining columns, without the
            empty ones. In JSON lines, several sources mean that a list of texts stays a list. If
            not given, the first two columns are source and target.
    """
    if columns:
        check_columns(columns)
        if second is not None:
            raise ConfigError(
                f"`columns` are those of one file, but there are two: {path} and {second}. "
                "Leave `columns` out, or put the files side by side: `paste SOURCES TARGETS`."
            )
        formats = _by_columns(columns)
    name, lines = file_name(path), list(read_lines(path))
    if not lines:
        raise DataError(f"{name} is empty.")
    if second is None:
        numbered = _find_format(path, lines, formats or FORMATS)(name, lines)
    else:
        numbered = _read_aligned((name, lines), (file_name(second), list(read_lines(second))))
    # Named columns may be empty, such as a missing context; otherwise a tuple is a pair of texts.
    return _keep_usable(name, numbered, has_text=any if columns else all)


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write examples with all fields as JSON lines, which `read_examples` restores."""
    write_text(path, "".join(_to_json(example) + "\n" for example in examples))


def _by_columns(columns: Sequence[str]) -> dict[str, Format]:
    join: Callable[[list[str]], Any] = as_source if columns.count(SOURCE) > 1 else " ".join
    if SOURCES in columns:
        join = as_nonempty_source
    return {
        ".csv": partial(read_csv_columns, columns=columns),
        ".jsonl": partial(read_json_lines, join=join),
        ".tsv": partial(read_tsv_columns, columns=columns),
    }


def _keep_usable(
    name: str, numbered: Numbered, has_text: Callable[[tuple[Any, ...]], bool]
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


def _find_format(path: str | Path, lines: list[str], formats: Mapping[str, Format]) -> Format:
    if str(path) == STANDARD_INPUT:
        first = next((line for line in lines if line.strip()), "")
        return formats[".jsonl" if first.lstrip().startswith("{") else ".tsv"]
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix.replace(".ndjson", ".jsonl")
    return formats.get(suffix, formats[".tsv"])


def _read_tsv(name: str, lines: list[str]) -> Numbered:
    without = [n for n, line in enumerate(lines, start=1) if line.strip() and "\t" not in line]
    if without:
        more = f" ({len(without):,} lines have none)" if len(without) > 1 else ""
        raise DataError(
            f"{name}, line {without[0]:,}, has no tab{more}. "
            "A line holds the source, a tab and the target."
        )
    for number, line in enumerate(lines, start=1):
        # Tatoeba exports have a third column with the authors.
        source, target, *_ = [*line.split("\t"), ""]
        yield number, Example(source.strip(), target.strip())


def _read_csv(name: str, lines: list[str]) -> Numbered:
    rows = read_rows(name, lines)
    columns = _find_columns(name, [title.strip() for title in next(rows)[1]])
    for number, row in rows:
        if row and len(row) <= max(columns):
            raise DataError(
                f"{name}, line {number:,}, has no column {max(columns) + 1}: it has {len(row)}."
            )
        source, target = (one_line(row[column]) if row else "" for column in columns)
        yield number, Example(source, target)


def _find_columns(name: str, header: list[str]) -> tuple[int, int]:
    for title, other in (("source", "target"), ("target", "source")):
        if title in header and other not in header:
            raise DataError(f"{name} has a column '{title}' but no column '{other}'.")
    if "source" in header:
        return header.index("source"), header.index("target")
    if len(header) < 2:
        raise DataError(
            f"{name} has {len(header)} columns in its first line, but a pair needs two. "
            "Separate the columns by commas and name them source,target."
        )
    logger.info("%s: taking '%s' as source and '%s' as target", name, *header[:2])
    return 0, 1


def read_json_lines(
    name: str, lines: list[str], *, join: Callable[[list[str]], Any] = " ".join
) -> Numbered:
    """Read one object per line; `join` makes the source from a list of texts."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _from_json(line, f"{name}, line {number:,},", join)


def _from_json(line: str, location: str, join: Callable[[list[str]], Any]) -> Example:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{location} is not valid JSON: {error.msg} at position {error.pos + 1}."
        ) from None
    except RecursionError:
        raise DataError(f"{location} is not usable JSON: it is nested too deeply.") from None
    if not isinstance(value, dict):
        raise DataError(
            f"{location} must be an object with `source` and `target`, "
            f"but is {type(value).__name__}."
        )
    source_key, target_key = _find_keys(value, location)
    target, *references = [*_texts(value[target_key], location, target_key), ""]
    return Example(
        source=join(_texts(value[source_key], location, source_key)),
        target=target,
        references=tuple(filter(None, references)),
        alignment=_read_alignment(value.get("alignment"), location),
        tags=tuple(_texts(value.get("tags", []), location, "tags")),
    )


def _find_keys(value: dict[str, Any], location: str) -> tuple[str, str]:
    for pair in (("source", "target"), ("src", "tgt")):
        missing = [key for key in pair if key not in value]
        if len(missing) == 1:
            raise DataError(f"{location} has no key `{missing[0]}`.")
        if not missing:
            return pair
    if len(value) == 2:
        source, target = value
        return source, target
    known = ", ".join(f"`{key}`" for key in value) or "none"
    raise DataError(f"{location} has no keys `source` and `target`. Its keys are: {known}.")


def _texts(value: Any, location: str, key: str) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise DataError(
                f"{location} must have text or a list of texts as `{key}`, "
                f"but has {json.dumps(text)[:80]}."
            )
        # JSON can encode half a surrogate pair, which UTF-8 cannot.
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise DataError(f"{location} holds half a character (a lone surrogate) in `{key}`.")
    return [one_line(text) for text in texts]


def _read_alignment(value: Any, location: str) -> Alignment | None:
    if value is None:
        return None
    try:
        links = [link.split("-") for link in value.split()] if isinstance(value, str) else value
        return tuple((int(source), int(target)) for source, target in links)
    except (TypeError, ValueError):
        raise DataError(
            f"{location} must have links such as [[0, 0], [1, 2]] or '0-0 1-2' as `alignment`, "
            f"but has {json.dumps(value)[:80]}."
        ) from None


def _to_json(example: Example) -> str:
    value: dict[str, Any] = {"source": example.source, "target": example.target}
    if example.references:
        value["target"] = [example.target, *example.references]
    if example.alignment is not None:
        value["alignment"] = example.alignment
    if example.tags:
        value["tags"] = example.tags
    return json.dumps(value, ensure_ascii=False)


FORMATS: dict[str, Format] = {
    ".csv": _read_csv,
    ".jsonl": read_json_lines,
    ".tsv": _read_tsv,
}
