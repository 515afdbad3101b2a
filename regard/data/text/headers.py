"""Titles of columns, and recognition of header lines."""

import re
import shlex
from collections.abc import Sequence

from regard.core.logging import logger

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
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}")
_MAX_TITLE_LENGTH = 30
_TITLE_PARTS = re.compile(r"[ _-]+|(?=\d)")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")


def with_row_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the titles in the first row, with an empty one above row names, as R writes them."""
    titles, rest = list(rows[0]) if rows else [], rows[1:]
    longer = [cells for cells in rest if len(cells) == len(titles) + 1]
    has_names = all(cells[0] and may_be_id(cells[0]) for cells in longer)
    return ["", *titles] if has_names and 2 * len(longer) > len(rest) else titles


def find_missing(names: Sequence[str], titles: Sequence[str]) -> list[str]:
    """Return the names that are not among the titles of a header, in upper or lower case."""
    folded = {title.casefold() for title in titles}
    return [name for name in names if name.casefold() not in folded]


def has_header(
    name: str, titles: Sequence[str], rows: Sequence[Sequence[str]], *, remedy: str
) -> bool:
    """Return whether the first row of a TSV file has the titles of the columns.

    A header consists of distinct short titles, and has a title of ids above ids, or known titles.
    Titles that are also ordinary words need rows of several words below them. A log line reports
    that a first row of short texts above rows of several words is not taken as a header.
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
    if "" in first or 10 * num_similar > len(rows):
        return False
    has_words = [_has_words(cells) for cells in columns]
    if is_all_known and (is_any_clear or any(has_words)):
        return True
    clear = [words for title, words in zip(first, has_words, strict=True) if title in _CLEAR_TITLES]
    if clear and all(clear) and sum(has_words) > 1:
        return True
    texts = [title for title, words in zip(titles, has_words, strict=True) if words]
    may_be_titles = len(texts) > 1 and all(len(title) > 3 and title.isalpha() for title in titles)
    if not (is_all_known or is_any_clear or may_be_titles) or is_row(titles, rows):
        return False
    logger.info(
        "%s: the first line, '%s', is not taken as a header. If it is one, %s.",
        name,
        " ".join(titles),
        remedy.format(shlex.quote(",".join(texts[:2] if len(texts) > 1 else titles))),
    )
    return False


def is_row(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
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
    """Return whether cells are UUIDs, or mostly distinct integers that may have one prefix."""
    if cells and all(map(_UUID.fullmatch, cells)):
        return True
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
