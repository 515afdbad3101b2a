"""Readers of aligned files, TSV, CSV and JSON lines as examples, and a writer of JSON lines."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    as_nonempty_source,
    as_roles,
    as_source,
    check_columns,
    find_titles,
    one_line,
    read_csv_pairs,
    read_tsv_pairs,
    read_two_columns,
)
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.tables import ID_TITLES, may_be_id

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


def read_json_lines(
    name: str,
    lines: list[str],
    *,
    join: Callable[[list[str]], Any] = " ".join,
    names: Sequence[str] = (),
) -> Numbered:
    """Read one object per line.

    Args:
        name: Name of the file in messages.
        lines: The lines.
        join: Function that makes the source from a list of texts.
        names: Keys of the sources and, as the last one, of the target.
    """
    keys: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        location = f"{name}, line {number:,},"
        converted: Example | DataError
        try:
            record = parse_record(line, location)
            # All lines have the keys of the first one, in any order.
            if not keys or any(key not in record.texts for key in keys):
                keys = _find_keys(name, record, location, names=names)
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

    def text_keys(self) -> list[str]:
        """Return the keys of texts without those of ids."""
        items = self.texts.items()
        return [
            key for key, text in items if key.casefold() not in ID_TITLES or not may_be_id(text)
        ]


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


def _find_keys(name: str, record: Record, location: str, *, names: Sequence[str]) -> list[str]:
    """Return the keys of sources and target, and log them if they have unusual names."""
    missing = [key for key in names if key not in record.texts]
    if names and not missing:
        return list(names)
    # `write_examples` writes the keys `source` and `target`, such as those of a run's test set.
    if missing and missing == list(names) and {"source", "target"} <= {*record.texts}:
        logger.info("%s: 'source' is the source, 'target' the target", name)
    elif missing:
        raise DataError(
            f"{location} has no key `{missing[0]}`.{did_you_mean(missing[0], record.texts)} "
            f"Its keys are: {_list_keys(record)}."
        )
    for pair in (("source", "target"), ("src", "tgt")):
        missing = [key for key in pair if key not in record.texts]
        if len(missing) == 1:
            raise DataError(f"{location} has no key `{missing[0]}`.")
        if not missing:
            return list(pair)
    keys = record.text_keys()
    if len(keys) != 2:
        raise DataError(
            f"{location} has no keys `source` and `target`. Its keys are: {_list_keys(record)}. "
            "Name two of them, the source first: `--columns KEY,KEY`."
        )
    logger.info("%s: '%s' is the source, '%s' the target", name, *keys)
    return keys


def _list_keys(record: Record) -> str:
    return ", ".join(f"`{key}`" for key in record.texts) or "none"


def read_texts(record: Record, key: str, location: str) -> list[str]:
    """Return the text of a key, or its list of texts, each on one line."""
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
