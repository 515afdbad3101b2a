"""JSON lines: objects with texts, whose keys are the titles of a table."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.core.tables import did_you_mean
from regard.data.example import Alignment, Example, Numbered
from regard.data.text.choice import Chosen, find_lone_title, find_pair, has_pair
from regard.data.text.columns import SOURCE, TARGET, find_titled, one_line
from regard.data.text.headers import SOURCE_TITLES, find_missing
from regard.data.text.tables import Table

_NUM_INSPECTED = 100
"""Number of JSON lines that are inspected to find the keys."""


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
    lines: Iterable[str],
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
    remaining = iter(lines)
    first = list(islice(remaining, _NUM_INSPECTED))
    for number, line in enumerate(chain(first, remaining), start=1):
        if not line.strip():
            continue
        location = f"{name}, line {number:,},"
        converted: Example | DataError
        try:
            record = parse_record(line, location)
            if not keys and number <= _NUM_INSPECTED:
                keys = _find_keys(name, record.as_table(location, first), names=names, find=find)
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
    except ValueError:
        raise DataError(f"{location} is not usable JSON: a number has too many digits.") from None
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
                f"but has {_shorten(text)}."
            )
        # JSON can encode half a surrogate pair, which UTF-8 cannot.
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise DataError(f"{location} holds half a character (a lone surrogate) in `{key}`.")
    return [one_line(text) for text in texts]


def _shorten(value: Any) -> str:
    """Return the beginning of a value as JSON, for a message."""
    try:
        return json.dumps(value)[:80]
    except RecursionError:
        return "a value that is nested too deeply"


def _read_alignment(value: Any, location: str) -> Alignment | None:
    if value is None:
        return None
    try:
        links = [link.split("-") for link in value.split()] if isinstance(value, str) else value
        return tuple((int(source), int(target)) for source, target in links)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"{location} must have links such as [[0, 0], [1, 2]] or '0-0 1-2' as `alignment`, "
            f"but has {_shorten(value)}."
        ) from None
