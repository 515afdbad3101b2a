"""Tables of TSV, CSV and JSON lines: rows, recognition of header lines and of columns of texts."""

import csv
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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

METADATA_TITLES = frozenset(("", "attribution", "licence", "license", "split", "url"))
"""Titles of columns that are neither texts nor labels."""

ATTRIBUTE_TITLES = frozenset(("lang", "language", "score", "speaker"))
"""Titles of columns that are no texts, but may be labels."""

LANGUAGES = frozenset(
    "arabic bengali bulgarian catalan chinese croatian czech danish dutch english estonian finnish"
    " french german greek hebrew hindi hungarian icelandic indonesian irish italian japanese korean"
    " latin latvian lithuanian norwegian persian polish portuguese romanian russian serbian slovak"
    " slovenian spanish swedish thai turkish ukrainian urdu vietnamese welsh".split()
)
"""Names of languages, which are titles of columns of sentences."""

_LANGUAGE_CODES = frozenset(
    # Among them are words such as "it", "es" and "no".
    "ar bg bn ca cs da de el en es et fa fi fr ga he hi hr hu id is it ja ko la lt lv nb nl no pl"
    " pt ro ru sk sl sr sv th tr uk ur vi zh".split()
)
_CLEAR_TITLES = SOURCE_TITLES | TARGET_TITLES | LANGUAGES
_WORD_TITLES = frozenset(
    "answer article author caption context dialogue document domain file hypothesis image name path"
    " phonemes phones premise prompt pronunciation query question reference reply response sentence"
    " summary text title transcript transcription translation user word".split()
)
"""Titles that may also be the first source or target of a file of single words."""

_KNOWN = _CLEAR_TITLES.union(
    LABEL_TITLES, ID_TITLES, METADATA_TITLES, ATTRIBUTE_TITLES, _LANGUAGE_CODES, _WORD_TITLES
) - {""}
_ID = re.compile(r"([A-Za-z_:#-]{0,12})\d+")
_MAX_TITLE_LENGTH = 30
_TITLE_PARTS = re.compile(r"[ _-]+|(?=\d)")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
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
    titles = _with_row_names(filled)
    is_header = bool(titles) and (
        (bool(names) and not find_missing(names, titles))
        or _has_header(name, titles, filled[1:], remedy=remedy)
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
    titles = _with_row_names(filled)
    is_named = bool(names) and not find_missing(names, titles)
    if not is_named and _is_row(titles, filled[1:]):
        titles = []
    return _below_header(Table(name, delimiter, titles, rows, filled), first)


def _below_header(table: Table, first: Sequence[Row]) -> Table:
    """Remove the header from the rows of a table that has titles."""
    if not table.titles:
        return table
    header = next(number for number, cells in first if cells)
    rows = (row for row in table.rows if row[0] > header)
    return replace(table, rows=rows, inspected=table.inspected[1:])


def _with_row_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the titles in the first row, with an empty one above row names, as R writes them."""
    titles, rest = list(rows[0]) if rows else [], rows[1:]
    longer = [cells for cells in rest if len(cells) == len(titles) + 1]
    has_names = all(cells[0] and may_be_id(cells[0]) for cells in longer)
    return ["", *titles] if has_names and 2 * len(longer) > len(rest) else titles


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


def _has_header(
    name: str, titles: Sequence[str], rows: Sequence[Sequence[str]], *, remedy: str
) -> bool:
    """Return whether the first row of a TSV file has the titles of the columns.

    A header consists of distinct short titles, and has a title of ids above ids, or known titles.
    Titles that are also ordinary words need rows of several words below them, and so does a header
    with unknown titles; without them, a log line reports that the first row is not a header.
    A first row that resembles the rows below it is not a header.

    Args:
        name: Name of the file in messages.
        titles: Cells of the first row.
        rows: Cells of the rows below it.
        remedy: As for `read_tsv`.
    """
    first, columns = [title.casefold() for title in titles], _transpose(rows, len(titles))
    if len({*first}) < len(first) or not all(map(_is_short, first)):
        return False
    if _has_titled_ids(first, columns):
        return True
    num_similar = sum(all(is_known(cell.casefold()) for cell in cells) for cells in rows)
    is_all_known, is_any_clear = all(map(is_known, first)), bool(_CLEAR_TITLES & {*first})
    if "" in first or 10 * num_similar > len(rows) or not (is_all_known or is_any_clear):
        return False
    has_words = [_has_words(cells) for cells in columns]
    if is_all_known and (is_any_clear or any(has_words)):
        return True
    if is_any_clear and all(has_words) and rows:
        return True
    logger.info(
        "%s: the first line, '%s', is not taken as a header. If it is one, %s.",
        name,
        " ".join(titles),
        remedy.format(shlex.quote(",".join(titles))),
    )
    return False


def _is_row(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row of a CSV file is one of texts, not of titles."""
    first, columns = [title.casefold() for title in titles], _transpose(rows, len(titles))
    if _CLEAR_TITLES & {*first} or all(map(is_known, first)) or _has_titled_ids(first, columns):
        return False
    return any(map(_resembles, titles, columns))


def _resembles(cell: str, cells: Sequence[str]) -> bool:
    """Return whether a cell is a number, a sentence or a repeated text like the ones below it."""
    if not cell or not cells:
        return False
    if _NUMBER.fullmatch(cell):
        return all(map(_NUMBER.fullmatch, cells))
    words, below = cell.casefold().split(), {*" ".join(cells).casefold().split()}
    is_sentence = cell.endswith(_SENTENCE_ENDS) or len(words) > 3
    num_sentences = sum(one.endswith(_SENTENCE_ENDS) or len(one.split()) > 3 for one in cells)
    return (
        (is_sentence and 2 * num_sentences > len(cells))
        or (len(words) > 1 and below.issuperset(words))
        or cells.count(cell) > 1
    )


def _transpose(rows: Sequence[Sequence[str]], num: int) -> list[list[str]]:
    return [[cells[index] for cells in rows if index < len(cells)] for index in range(num)]


def _has_titled_ids(titles: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    titled = zip(titles, columns, strict=True)
    return any(title in ID_TITLES and is_id_column(cells) for title, cells in titled)


def is_known(title: str) -> bool:
    """Return whether a title in lower case is known: `german`, `text`, `sentence_1`."""
    name, *parts = _TITLE_PARTS.split(title)
    if " " in title and name in _LANGUAGE_CODES:  # "is it" is a text
        return False
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
