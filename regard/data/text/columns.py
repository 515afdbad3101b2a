"""Columns of TSV and CSV files: which is a source, which a target, and which neither."""

import csv
import re
from collections.abc import Iterator, Sequence

from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.core.tables import did_you_mean, one_of
from regard.data.example import Example, Numbered

SOURCE, TARGET, SKIPPED, SOURCES = COLUMNS = ("source", "target", "-", "sources")
"""What may stand in a column; `sources` are all columns that the others leave over."""


def check_columns(columns: Sequence[str]) -> None:
    """Refuse names that no column has, and columns that make no pair."""
    for column in columns:
        if column not in COLUMNS:
            raise ConfigError(
                f"`columns` must each be {one_of(COLUMNS)}, but one is '{column}'."
                f"{did_you_mean(column, COLUMNS)}"
            )
    if TARGET not in columns or not {SOURCE, SOURCES} & {*columns}:
        raise ConfigError(
            "`columns` must have at least one 'source' and one 'target', "
            f"but are '{','.join(columns)}'."
        )
    if SOURCES in columns and columns.count(SOURCE) + columns.count(SOURCES) > 1:
        raise ConfigError(
            "`columns` must have 'sources' once and no 'source' beside it, "
            f"but are '{','.join(columns)}'."
        )


def split_columns(line: str, columns: Sequence[str]) -> str | tuple[str, ...]:
    """Return the source of a line to predict from.

    The line holds the source columns alone, or all columns where they stand in training data. Where
    their number is open, it holds them alone.

    Args:
        line: Without its end. If empty, so is the source.
        columns: As for `read_examples`; without any, the line is the source as it is.
    """
    if not columns:
        return line
    if not line.strip():
        return ""
    cells = [cell.strip() for cell in line.split("\t")]
    if SOURCES in columns:
        return as_story(cells)
    places = _places(columns, SOURCE)
    if len(cells) == len(places):
        return as_source(cells)
    if len(cells) <= places[-1]:
        raise DataError(
            f"A line must have {_count(len(places))}, its sources, or all of "
            f"'{','.join(columns)}', parted by tabs, but has {len(cells)}: '{line[:60]}'."
        )
    return as_source([cells[place] for place in places])


def as_source(texts: Sequence[str]) -> str | tuple[str, ...]:
    """Return one text as it is, and several as a tuple."""
    return texts[0] if len(texts) == 1 else tuple(texts)


def as_story(texts: Sequence[str]) -> str | tuple[str, ...]:
    """Return any number of texts as a source; empty ones, which fill a table up, are left out."""
    return as_source([text for text in texts if text] or [""])


def read_tsv_columns(name: str, lines: list[str], *, columns: Sequence[str]) -> Numbered:
    """Read lines whose columns are parted by tabs; columns beyond the named ones are left out."""
    for number, line in enumerate(lines, start=1):
        cells = line.split("\t") if line.strip() else []
        yield number, _to_example(cells, columns, f"{name}, line {number:,},")


def read_csv_columns(name: str, lines: list[str], *, columns: Sequence[str]) -> Numbered:
    """Read rows by the position of their columns, below a header with any titles."""
    rows = read_rows(name, lines)
    number, header = next(rows)
    titles = [title.strip() for title in header]
    _check_width(titles, columns, f"{name}, line {number:,},")
    spread = _spread(columns, len(titles))
    for place, (title, column) in enumerate(zip(titles, spread, strict=False), start=1):
        if column != SKIPPED and title in (SOURCE, TARGET) and title != column:
            raise DataError(
                f"{name} calls its column {place} '{title}', but `columns` call it '{column}'. "
                "Name the columns in the order of the file."
            )
    named = (f"'{title}' as {column}" for title, column in zip(titles, spread, strict=False))
    logger.info("%s: taking %s", name, ", ".join(named))
    for number, row in rows:
        yield number, _to_example(row, columns, f"{name}, line {number:,},")


def read_rows(name: str, lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a CSV file, header and empty rows included, each with its line's number."""
    rows = csv.reader((line + "\n" for line in lines), strict=True)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise DataError(f"{name}, line {rows.line_num:,}, is not valid CSV: {error}.") from None


def one_line(text: str) -> str:
    """Put a text that has several lines into one."""
    return re.sub(r"[\r\n]+", " ", text).strip()


def _to_example(cells: list[str], columns: Sequence[str], place: str) -> Example:
    if not cells:
        return Example("")
    _check_width(cells, columns, place)
    join = as_story if SOURCES in columns else as_source
    columns = _spread(columns, len(cells))
    sources = [one_line(cells[column]) for column in _places(columns, SOURCE)]
    targets = [one_line(cells[column]) for column in _places(columns, TARGET)]
    target, *references = [text for text in targets if text] or [""]
    return Example(join(sources), target, references=tuple(references))


def _spread(columns: Sequence[str], num: int) -> list[str]:
    """Put a 'source' for every column that `sources` stands for, where there are `num` in all."""
    num_sources = num - len(columns) + 1
    return [
        name
        for column in columns
        for name in ([SOURCE] * num_sources if column == SOURCES else [column])
    ]


def _check_width(cells: list[str], columns: Sequence[str], place: str) -> None:
    if len(cells) < len(columns):
        raise DataError(
            f"{place} has {_count(len(cells))}, but `columns` name {len(columns)}: "
            f"'{','.join(columns)}'."
        )


def _places(columns: Sequence[str], name: str) -> list[int]:
    return [place for place, column in enumerate(columns) if column == name]


def _count(num: int) -> str:
    return "1 column" if num == 1 else f"{num} columns"
