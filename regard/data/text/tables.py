"""Tables of TSV, CSV and JSON lines: rows, titles and columns of texts."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeAlias

from regard.core.errors import DataError
from regard.data.example import Example, Numbered
from regard.data.text.headers import (
    ATTRIBUTE_TITLES,
    ID_TITLES,
    METADATA_TITLES,
    find_missing,
    has_header,
    is_id_column,
    is_row,
    may_be_id,
    with_row_names,
)

Row: TypeAlias = tuple[int, list[str]]
"""Line number and cells of a row; an empty line has no cells."""

NUM_INSPECTED = 1_000
"""Number of rows that are inspected to recognise a header and ids."""

_URL = re.compile(r"(https?|ftp)://\S+")


@dataclass
class Table:
    """Rows of a file below its header, if it has one; JSON lines have keys as titles."""

    name: str
    """Name of the file in messages."""
    delimiter: str
    """Delimiter of cells."""
    titles: list[str]
    """Titles of the columns; empty without a header."""
    rows: Iterator[Row]
    """Rows below the header."""
    inspected: list[list[str]]
    """Cells of the first rows below the header, without empty rows."""

    @property
    def width(self) -> int:
        """Number of titles, or of cells in most rows."""
        widths = Counter(map(len, self.inspected))
        return len(self.titles) or max(widths, key=lambda width: widths[width], default=0)

    def cells(self, index: int) -> list[str]:
        """Return the inspected cells of a column."""
        return [cells[index].strip() for cells in self.inspected if index < len(cells)]

    def title(self, index: int) -> str:
        """Return the title of a column; empty without one."""
        return self.titles[index] if index < len(self.titles) else ""

    def find_titled(self, titles: Iterable[str]) -> list[int]:
        """Return the columns whose title is one of some titles."""
        return [index for index, title in enumerate(self.titles) if title.casefold() in titles]

    def find_metadata(self) -> list[int]:
        """Return the columns whose title is not that of texts."""
        ids = [
            index for index in self.find_titled(ID_TITLES) if all(map(may_be_id, self.cells(index)))
        ]
        return ids + self.find_titled(METADATA_TITLES | ATTRIBUTE_TITLES)

    def find_texts(self, columns: Sequence[int], *, minimum: int, maximum: int) -> list[int]:
        """Return the columns of texts by title and contents.

        Ids and metadata are left out; URLs and cells that are all equal only from more than
        `maximum` columns. All columns are returned if less than `minimum` would be left.
        """
        metadata, rest = self.find_metadata(), list(columns)
        for is_other, limit in (
            (metadata.__contains__, minimum),
            (self._has_ids, minimum),
            (self._has_no_texts, maximum),
        ):
            texts = [index for index in rest if not is_other(index)]
            rest = texts if len(texts) >= minimum and len(rest) > limit else rest
        return rest

    def _has_ids(self, index: int) -> bool:
        return is_id_column(self.cells(index))

    def _has_no_texts(self, index: int) -> bool:
        cells = self.cells(index)
        is_constant = len(cells) > 1 and len({*cells}) == 1
        return is_constant or (bool(cells) and all(map(_URL.fullmatch, cells)))


def read_tsv(
    name: str,
    lines: Iterable[str],
    *,
    names: Sequence[str] = (),
    remedy: str = "delete it",
    num_inspected: int = NUM_INSPECTED,
) -> Table:
    """Read lines of tab-separated cells.

    Args:
        name: Name of the file in messages.
        lines: The lines.
        names: Titles by which a header is recognised, besides the known ones.
        remedy: What to do about a header that is not recognised; `{}` stands for its titles.
        num_inspected: Number of lines to read in advance.
    """
    first, rows = _inspect(split_lines(lines), num_inspected)
    filled = [[cell.strip() for cell in cells] for _, cells in first if cells]
    titles = with_row_names(filled)
    is_header = bool(titles) and (
        (bool(names) and not find_missing(names, titles))
        or has_header(name, titles, filled[1:], remedy=remedy)
    )
    return _below_header(Table(name, "\t", titles if is_header else [], rows, filled), first)


def split_lines(lines: Iterable[str]) -> Iterator[Row]:
    """Split lines at tabs."""
    return enumerate((line.split("\t") if line.strip() else [] for line in lines), start=1)


def read_csv(name: str, lines: Iterable[str], *, names: Sequence[str] = ()) -> Table:
    """Read rows, below a header unless the first row resembles the others.

    Semicolons or tabs separate cells if the first line has no comma.

    Args:
        name: Name of the file in messages.
        lines: The lines.
        names: Titles by which a header is recognised.
    """
    remaining = iter(lines)
    line = next(remaining, "")
    delimiter = _find_delimiter(line)
    rows = _read_csv_rows(name, chain([line], remaining), delimiter)
    first, rows = _inspect(rows, NUM_INSPECTED)
    filled = [[cell.strip() for cell in cells] for _, cells in first if cells]
    titles = with_row_names(filled)
    is_named = bool(names) and not find_missing(names, titles)
    if not is_named and is_row(titles, filled[1:]):
        titles = []
    return _below_header(Table(name, delimiter, titles, rows, filled), first)


def _below_header(table: Table, first: Sequence[Row]) -> Table:
    """Remove the header from the rows of a table that has titles."""
    if not table.titles:
        return table
    header = next(number for number, cells in first if cells)
    rows = (row for row in table.rows if row[0] > header)
    return replace(table, rows=rows, inspected=table.inspected[1:])


def _read_csv_rows(name: str, lines: Iterable[str], delimiter: str) -> Iterator[Row]:
    rows = csv.reader((line + "\n" for line in lines), strict=True, delimiter=delimiter)
    try:
        for cells in rows:
            yield rows.line_num, cells
    except csv.Error as error:
        raise DataError(f"{name}, line {rows.line_num:,}, is not valid CSV: {error}.") from None


def _find_delimiter(header: str) -> str:
    for delimiter in ",;\t":
        if len(next(csv.reader([header], delimiter=delimiter), [])) > 1:
            return delimiter
    return ","


def convert_rows(table: Table, convert: Callable[[list[str], str], Example]) -> Numbered:
    """Yield the example of each row, or the error of a row that cannot be converted.

    Args:
        table: The rows.
        convert: Function from the cells of a row and its location in messages to an example.
    """
    for number, cells in table.rows:
        converted: Example | DataError
        try:
            location = f"{table.name}, line {number:,},"
            converted = convert(cells, location) if cells else Example("")
        except DataError as error:
            converted = error
        yield number, converted


def _inspect(rows: Iterator[Row], num: int) -> tuple[list[Row], Iterator[Row]]:
    """Return the first rows, and an iterator over all rows."""
    first = list(islice(rows, num))
    return first, chain(first, rows)
