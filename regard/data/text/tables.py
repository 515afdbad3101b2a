"""Tables in TSV and CSV files: rows, recognition of a header line and of id columns."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeAlias

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.example import Example, Numbered

Row: TypeAlias = tuple[int, list[str]]
"""Line number and cells of a row; an empty line has no cells."""

NUM_INSPECTED = 1_000
"""Number of rows that are inspected to recognise a header and ids."""

SOURCE_TITLES = frozenset(("source", "src", "input"))
TARGET_TITLES = frozenset(("target", "tgt", "trg", "output"))
"""Titles of the columns of a pair."""

LABEL_TITLES = frozenset(("label", "class", "category", "sentiment"))
"""Titles of columns of labels."""

ID_TITLES = frozenset(
    ("", "#", "id", "ids", "idx", "index", "key", "line", "no", "no.", "nr", "nr.", "num", "row")
)
"""Titles of columns of ids; pandas leaves the title of row numbers empty."""

LANGUAGES = frozenset(
    "arabic bengali bulgarian catalan chinese croatian czech danish dutch english estonian finnish"
    " french german greek hebrew hindi hungarian icelandic indonesian irish italian japanese korean"
    " latin latvian lithuanian norwegian persian polish portuguese romanian russian serbian slovak"
    " slovenian spanish swedish thai turkish ukrainian urdu vietnamese welsh".split()
)
"""Names of languages, which are titles of columns of sentences."""

_CLEAR_TITLES = SOURCE_TITLES | TARGET_TITLES | LANGUAGES
_WORD_TITLES = LABEL_TITLES | frozenset(
    # Codes of languages, among them words such as "it", "es" and "no".
    "ar bg bn ca cs da de el en es et fa fi fr ga he hi hr hu id is it ja ko la lt lv nb nl no pl"
    " pt ro ru sk sl sr sv th tr uk ur vi zh"
    " answer article attribution author caption context dialogue document domain file hypothesis"
    " image lang language license licence name path phonemes phones premise prompt"
    " pronunciation query question reference reply response score sentence speaker split summary"
    " text title transcript transcription translation url user word".split()
)
"""Titles that may also be the first source or target of a file of single words."""

_KNOWN = (_CLEAR_TITLES | _WORD_TITLES | ID_TITLES) - {""}
_ID = re.compile(r"([A-Za-z_:#-]{0,12})\d+")
_MAX_TITLE_LENGTH = 30
_TITLE_PARTS = re.compile(r"[ _-]+|(?=\d)")


@dataclass
class Table:
    """Rows of a TSV or CSV file below its header, if it has one."""

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

    def is_titled(self, index: int, titles: Iterable[str]) -> bool:
        """Return whether the title of a column is one of some titles."""
        return index < len(self.titles) and self.titles[index].casefold() in titles

    def find_ids(self) -> list[int]:
        """Return the columns whose title is that of ids, or whose cells are numbered ids."""
        return [
            index
            for index in range(self.width)
            if is_id_column(cells := self.cells(index))
            or (self.is_titled(index, ID_TITLES) and all(map(may_be_id, cells)))
        ]


def read_tsv(
    name: str,
    lines: Iterable[str],
    *,
    names: Sequence[str] = (),
    num_inspected: int = NUM_INSPECTED,
) -> Table:
    """Read lines of tab-separated cells.

    Args:
        name: Name of the file in messages.
        lines: The lines.
        names: Titles by which a header is recognised, besides the known ones.
        num_inspected: Number of lines to read in advance.
    """
    first, rows = _inspect(split_lines(lines), num_inspected)
    filled = [[cell.strip() for cell in cells] for _, cells in first if cells]
    is_named = bool(names and filled) and not find_missing(names, filled[0])
    if not is_named and not (filled and has_header(name, filled)):
        return Table(name, "\t", [], rows, filled)
    header = next(number for number, cells in first if cells)
    below = (row for row in rows if row[0] > header)
    return Table(name, "\t", filled[0], below, filled[1:])


def split_lines(lines: Iterable[str]) -> Iterator[Row]:
    """Split lines at tabs."""
    return enumerate((line.split("\t") if line.strip() else [] for line in lines), start=1)


def read_csv(name: str, lines: Iterable[str], *, num_inspected: int = NUM_INSPECTED) -> Table:
    """Read rows below a header; semicolons or tabs separate cells if the header has no comma."""
    remaining = iter(lines)
    header = next(remaining, "")
    delimiter = _find_delimiter(header)
    rows = _read_csv_rows(name, chain([header], remaining), delimiter)
    _, titles = next(rows)
    first, rows = _inspect(rows, num_inspected)
    inspected = [cells for _, cells in first if cells]
    return Table(name, delimiter, [title.strip() for title in titles], rows, inspected)


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


def find_missing(names: Sequence[str], titles: Sequence[str]) -> list[str]:
    """Return the names that are not among the titles of a header, in upper or lower case."""
    folded = {title.casefold() for title in titles}
    return [name for name in names if name.casefold() not in folded]


def has_header(name: str, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row of a TSV file has the titles of the columns.

    A header consists of distinct short titles, and has a title of ids above ids, or known titles.
    Titles that are also ordinary words need rows of several words below them, and so does a header
    with unknown titles; without them, a log line reports that the first row is not a header.
    A first row that resembles the rows below it is not a header.

    Args:
        name: Name of the file in messages.
        rows: Cells of the first rows.
    """
    first, rest = [title.casefold() for title in rows[0]], rows[1:]
    if len({*first}) < len(first) or not all(map(_is_short, first)):
        return False
    columns = [
        [cells[index] for cells in rest if index < len(cells)] for index in range(len(first))
    ]
    titled = zip(first, columns, strict=True)
    if any(title in ID_TITLES and is_id_column(cells) for title, cells in titled):
        return True
    num_similar = sum(all(is_known(cell.casefold()) for cell in cells) for cells in rest)
    is_all_known, is_any_clear = all(map(is_known, first)), bool(_CLEAR_TITLES & {*first})
    if "" in first or 10 * num_similar > len(rest) or not (is_all_known or is_any_clear):
        return False
    has_words = [_has_words(cells) for cells in columns]
    if is_all_known and (is_any_clear or any(has_words)):
        return True
    if is_any_clear and all(has_words) and rest:
        return True
    logger.info(
        "%s: the first line, '%s', is not taken as a header. If it is one, name its columns: "
        "`--columns %s`.",
        name,
        " ".join(rows[0]),
        ",".join(rows[0]),
    )
    return False


def is_known(title: str) -> bool:
    """Return whether a title in lower case is known: `german`, `text`, `sentence_1`."""
    name, *parts = _TITLE_PARTS.split(title)
    return name in _KNOWN and all(part in _KNOWN or part in "abcd0123456789" for part in parts)


def is_id_column(cells: Sequence[str]) -> bool:
    """Return whether cells are ids: integers with or without the same prefix, mostly distinct."""
    matches = [_ID.fullmatch(cell) for cell in cells if cell]
    prefixes = {match and match[1] for match in matches}
    return len(prefixes) == 1 and None not in prefixes and 2 * len({*cells}) >= len(cells)


def may_be_id(cell: object) -> bool:
    """Return whether a cell below a title of ids is one: `no` and `id` are also languages."""
    if not isinstance(cell, str):
        return True
    return not cell or (any(map(str.isdigit, cell)) and not any(map(str.isspace, cell)))


def _is_short(title: str) -> bool:
    is_sentence = title.endswith((".", "!", "?")) and title not in ID_TITLES
    return len(title) <= _MAX_TITLE_LENGTH and len(title.split()) <= 2 and not is_sentence


def _has_words(cells: Sequence[str]) -> bool:
    """Return whether most cells have several words, or are long, as sentences without spaces."""
    return 2 * sum(" " in cell or len(cell) > 12 for cell in cells) > len(cells)
