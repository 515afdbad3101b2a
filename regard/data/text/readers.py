"""Readers of aligned files, TSV, CSV and JSON lines as examples, and a writer of JSON lines."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from regard.core.errors import ConfigError, DataError
from regard.core.files import write_text
from regard.core.logging import logger
from regard.core.progress import track
from regard.core.tables import did_you_mean
from regard.data.example import Alignment, Example, Numbered
from regard.data.text.columns import (
    SOURCE,
    SOURCES,
    TARGET,
    Chosen,
    as_nonempty_source,
    as_roles,
    as_source,
    check_columns,
    find_lone_title,
    find_pair,
    find_titled,
    find_titles,
    has_pair,
    one_line,
    read_csv_pairs,
    read_tsv_pairs,
    read_two_columns,
)
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.tables import (
    SOURCE_TITLES,
    Table,
    find_missing,
)

Format = Callable[[str, list[str]], Numbered]
"""Function from a file's name and lines to examples with line numbers."""

_NUM_INSPECTED = 100
"""Number of JSON lines that are inspected to find the keys."""

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
            the first two that do not hold ids.
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
    suffix = Path(str(path).lower().removesuffix(".gz")).suffix.replace(".ndjson", ".jsonl")
    return suffix if suffix in (".csv", ".jsonl") else ".tsv"


def find_json_pair(table: Table) -> Chosen:
    """Return the keys of source and target, or raise an error that lists the keys."""
    if lone := find_lone_title(table):
        raise DataError(f"{table.name} has no key `{lone[1]}`.")
    texts = table.find_texts(range(len(table.titles)), minimum=2, maximum=2)
    if len(texts) != 2 and not has_pair(table):
        raise DataError(
            f"{table.name} has no keys `source` and `target`. "
            f"Its keys are: {list_keys(table.titles)}. "
            "Name two of them, the source first: `--columns KEY,KEY`."
        )
    return find_pair(table)


def read_json_lines(
    name: str,
    lines: list[str],
    *,
    join: Callable[[list[str]], Any] = " ".join,
    names: Sequence[str] = (),
    find: Callable[[Table], Chosen] = find_json_pair,
) -> Numbered:
    """Read one object per line; the first one determines the keys.

    Args:
        name: Name of the file in messages.
        lines: The lines.
        join: Function that makes the source from a list of texts.
        names: Keys of the sources and, as the last one, of the target.
        find: Function that finds the keys of sources and target if they are not given.
    """
    keys: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        location = f"{name}, line {number:,},"
        converted: Example | DataError
        try:
            record = parse_record(line, location)
            if not keys and number <= _NUM_INSPECTED:
                keys = _find_keys(name, record.as_table(location, lines), names=names, find=find)
            converted = _to_example(record, keys, location, join=join)
        except DataError as error:
            converted = error
        yield number, converted


@dataclass(frozen=True)
class Record:
    """Object of a JSON line."""

    texts: Mapping[str, Any]
    """Sources and targets by key."""
    fields: Mapping[str, Any]
    """All fields of the object."""

    def as_table(self, location: str, lines: Sequence[str]) -> Table:
        """Return the keys as titles of a table of the first lines.

        Args:
            location: Location of the object in messages.
            lines: The first lines of its file.
        """
        titles = [key for key in self.texts if key not in ("alignment", "tags")]
        inspected = []
        for line in lines[:_NUM_INSPECTED]:
            with suppress(DataError):
                texts = parse_record(line, location).texts
                inspected.append([_as_cell(texts.get(title)) for title in titles])
        return Table(location, "", titles, iter(()), inspected)


def _as_cell(value: Any) -> str:
    """Return a text, or the first one of a list; anything else is a number like an id."""
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, str) else "0"


def parse_record(line: str, location: str) -> Record:
    """Parse an object; texts by language are in `translation`, as in data sets of Hugging Face."""
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
    translation = value.get("translation")
    return Record(translation if isinstance(translation, dict) else value, value)


def _to_example(
    record: Record, keys: Sequence[str], location: str, *, join: Callable[[list[str]], Any]
) -> Example:
    if not keys:
        raise DataError(f"{location} is not read: the first {_NUM_INSPECTED} lines have no pair.")
    *source_keys, target_key = keys
    sources = [read_texts(record, key, location) for key in source_keys]
    target, *references = [*read_texts(record, target_key, location), ""]
    return Example(
        source=join(sources[0]) if len(sources) == 1 else tuple(map(" ".join, sources)),
        target=target,
        references=tuple(filter(None, references)),
        alignment=_read_alignment(record.fields.get("alignment"), location),
        tags=tuple(_texts(record.fields.get("tags", []), location, "tags")),
    )


def _find_keys(
    name: str, table: Table, *, names: Sequence[str], find: Callable[[Table], Chosen]
) -> list[str]:
    """Return the keys of sources and target, and log them if they have unusual names."""
    # `write_examples` writes the keys `source` and `target`, such as those of a run's test set.
    if len(find_missing(names, table.titles)) == len(names) and {SOURCE, TARGET} <= {*table.titles}:
        names = ()
    if names:
        return find_keys(table, names)
    sources, targets = find(table)
    keys = [table.titles[index] for index in (*sources, *targets)]
    if not SOURCE_TITLES & {*keys}:
        log_keys(name, keys[:-1], keys[-1:])
    return keys


def find_keys(table: Table, names: Sequence[str]) -> list[str]:
    """Return the keys with these names, in upper or lower case, or raise an error with the keys."""
    if missing := find_missing(names, table.titles):
        raise DataError(
            f"{table.name} has no key `{missing[0]}`.{did_you_mean(missing[0], table.titles)} "
            f"Its keys are: {list_keys(table.titles)}."
        )
    return [table.titles[index] for index in find_titled(table, names)]


def log_keys(name: str, sources: Sequence[str], targets: Sequence[str] = ()) -> None:
    """Log which key is taken as what."""
    role = "is the source" if len(sources) == 1 else "are the sources"
    rest = "".join(f", '{key}' the target" for key in targets)
    logger.info("%s: '%s' %s%s", name, "' and '".join(sources), role, rest)


def list_keys(keys: Iterable[str]) -> str:
    """Return keys as a list in a message."""
    return ", ".join(f"`{key}`" for key in keys) or "none"


def read_texts(record: Record, key: str, location: str) -> list[str]:
    """Return the text of a key, or its list of texts, each on one line."""
    if key not in record.texts:
        raise DataError(f"{location} has no key `{key}`.")
    return _texts(record.texts[key], location, key)


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


TWO_COLUMNS: dict[str, Format] = {
    ".csv": read_csv_pairs,
    ".jsonl": read_json_lines,
    ".tsv": read_two_columns,
}
"""Formats of files in which the first two columns of TSV are known to be source and target."""
