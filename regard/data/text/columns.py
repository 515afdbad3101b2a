"""Columns of TSV and CSV files that hold sources, targets or neither."""

import csv
import re
from collections.abc import Iterator, Sequence

from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.core.tables import did_you_mean, one_of
from regard.data.example import Example, Numbered

SOURCE, TARGET, SKIPPED, SOURCES = COLUMNS = ("source", "target", "-", "sources")
"""Names of columns; `sources` stands for all columns that the others do not name."""


def check_columns(columns: Sequence[str]) -> None:
    """Raise `ConfigError` for unknown column names, and for columns that make no pair."""
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
    """Return the source of a line at prediction time.

    The line holds only the source columns, or all columns in the order of the training data. With
    `sources`, it holds only the source columns.

    Args:
        line: Line without its line end. The source of an empty line is empty.
        columns: Columns as for `read_examples`; if empty, the line itself is the source.
    """
    if not columns:
        return line
    if not line.strip():
        return ""
    cells = [cell.strip() for cell in line.split("\t")]
    if SOURCES in columns:
        return as_nonempty_source(cells)
    indexes = _find_columns(columns, SOURCE)
    if len(cells) == len(indexes):
        return as_source(cells)
    if len(cells) <= indexes[-1]:
        raise DataError(
            f"A line must have {_count(len(indexes))}, its sources, or all of "
            f"'{','.join(columns)}', separated by tabs, but has {len(cells)}: '{line[:60]}'."
        )
    return as_source([cells[index] for index in indexes])


def as_source(texts: Sequence[str]) -> str | tuple[str, ...]:
    """Return one text unchanged, and several as a tuple."""
    return texts[0] if len(texts) == 1 else tuple(texts)


def as_nonempty_source(texts: Sequence[str]) -> str | tuple[str, ...]:
    """Return texts as a source, without the empty ones, which pad the rows of a table."""
    return as_source([text for text in texts if text] or [""])


def read_tsv_columns(name: str, lines: list[str], *, columns: Sequence[str]) -> Numbered:
    """Read lines of tab-separated columns; ignore columns beyond the named ones."""
    for number, line in enumerate(lines, start=1):
        cells = line.split("\t") if line.strip() else []
        yield number, _to_example(cells, columns, f"{name}, line {number:,},")


def read_csv_columns(name: str, lines: list[str], *, columns: Sequence[str]) -> Numbered:
    """Read rows by the index of their columns, below a header with any titles."""
    rows = read_rows(name, lines)
    number, header = next(rows)
    titles = [title.strip() for title in header]
    _check_width(titles, columns, f"{name}, line {number:,},")
    expanded = _expand(columns, len(titles))
    for number, (title, column) in enumerate(zip(titles, expanded, strict=False), start=1):
        if column != SKIPPED and title in (SOURCE, TARGET) and title != column:
            raise DataError(
                f"{name} calls its column {number} '{title}', but `columns` call it '{column}'. "
                "Name the columns in the order of the file."
            )
    named = (f"'{title}' as {column}" for title, column in zip(titles, expanded, strict=False))
    logger.info("%s: taking %s", name, ", ".join(named))
    for number, row in rows:
        yield number, _to_example(row, columns, f"{name}, line {number:,},")


def read_rows(name: str, lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and cells of each row of a CSV file, with header and empty rows."""
    rows = csv.reader((line + "\n" for line in lines), strict=True)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise DataError(f"{name}, line {rows.line_num:,}, is not valid CSV: {error}.") from None


def one_line(text: str) -> str:
    """Join the lines of a text with spaces."""
    return re.sub(r"[\r\n]+", " ", text).strip()


def _to_example(cells: list[str], columns: Sequence[str], location: str) -> Example:
    if not cells:
        return Example("")
    _check_width(cells, columns, location)
    join = as_nonempty_source if SOURCES in columns else as_source
    columns = _expand(columns, len(cells))
    sources = [one_line(cells[index]) for index in _find_columns(columns, SOURCE)]
    targets = [one_line(cells[index]) for index in _find_columns(columns, TARGET)]
    target, *references = [text for text in targets if text] or [""]
    return Example(join(sources), target, references=tuple(references))


def _expand(columns: Sequence[str], num: int) -> list[str]:
    """Replace `sources` by one 'source' for each column it stands for, to `num` columns in all."""
    num_sources = num - len(columns) + 1
    return [
        name
        for column in columns
        for name in ([SOURCE] * num_sources if column == SOURCES else [column])
    ]


def _check_width(cells: list[str], columns: Sequence[str], location: str) -> None:
    if len(cells) < len(columns):
        raise DataError(
            f"{location} has {_count(len(cells))}, but `columns` name {len(columns)}: "
            f"'{','.join(columns)}'."
        )


def _find_columns(columns: Sequence[str], name: str) -> list[int]:
    return [index for index, column in enumerate(columns) if column == name]


def _count(num: int) -> str:
    return "1 column" if num == 1 else f"{num} columns"
