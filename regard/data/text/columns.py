"""Columns of tables that hold sources, targets or neither: by setting, or by title and contents."""

import re
import shlex
from collections.abc import Iterable, Sequence
from functools import partial

from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.core.tables import did_you_mean, one_of
from regard.data.example import Example, Numbered
from regard.data.text.choice import Chosen, find_lone_title, find_pair
from regard.data.text.headers import SOURCE_TITLES, TARGET_TITLES, find_missing
from regard.data.text.tables import (
    Table,
    convert_rows,
    read_csv,
    read_tsv,
    split_lines,
)

SOURCE, TARGET, SKIPPED, SOURCES = COLUMNS = ("source", "target", "-", "sources")
"""Roles of columns; `sources` stands for all columns that the others do not name."""


def check_columns(columns: Sequence[str]) -> None:
    """Raise `ConfigError` for columns that are neither roles nor titles, or that make no pair."""
    unknown = [column for column in columns if column not in COLUMNS]
    if unknown and {SKIPPED, SOURCES} & {*columns}:
        raise ConfigError(
            f"`columns` must each be {one_of(COLUMNS)}, or all be titles of columns, but one is "
            f"'{unknown[0]}'.{did_you_mean(unknown[0], COLUMNS)}"
        )
    if unknown and len({*columns}) < max(2, len(columns)):
        raise ConfigError(
            "`columns` must be at least two different titles, the last one that of the target, "
            f"but are '{','.join(columns)}'."
        )
    if unknown:
        return
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


def find_titles(columns: Sequence[str]) -> list[str]:
    """Return the titles that columns name, sources first and the target last; none for roles."""
    return list(columns) if any(column not in COLUMNS for column in columns) else []


def as_roles(columns: Sequence[str]) -> list[str]:
    """Return roles unchanged, and the roles of titles: sources, and the target last."""
    return [SOURCE] * (len(columns) - 1) + [TARGET] if find_titles(columns) else list(columns)


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
    columns = as_roles(columns)
    if SOURCES in columns:
        return as_nonempty_source(cells)
    indexes = find_columns(columns, SOURCE)
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


def read_tsv_pairs(name: str, lines: Iterable[str], *, columns: Sequence[str] = ()) -> Numbered:
    """Read lines of tab-separated columns, below a header if the first line is one."""
    remedy = "name its columns: `--columns {}`"
    return _read_pairs(read_tsv(name, lines, names=find_titles(columns), remedy=remedy), columns)


def read_csv_pairs(name: str, lines: Iterable[str], *, columns: Sequence[str] = ()) -> Numbered:
    """Read rows of a CSV file, below a header unless the first row is a pair."""
    return _read_pairs(read_csv(name, lines, names=find_titles(columns)), columns)


def read_two_columns(name: str, lines: Iterable[str]) -> Numbered:
    """Read source and target from the first two columns of lines without a header."""
    return read_rows(Table(name, "\t", [], split_lines(lines), []), ([0], [1]))


def _read_pairs(table: Table, columns: Sequence[str]) -> Numbered:
    if columns and not find_titles(columns):
        _check_titles(table, columns)
        if table.width >= len(columns):
            log_roles(table, *find_roles(columns, table.width))
        return convert_rows(table, partial(_read_roles, columns=columns))
    if columns:
        *sources, target = find_titled(table, columns)
        chosen: Chosen = (sources, [target])
    else:
        _check_pair(table)
        chosen = find_pair(table)
    log_roles(table, *chosen, hint="" if columns else _suggest_columns(table))
    return read_rows(table, chosen, maximum=len(table.titles))


def _check_pair(table: Table) -> None:
    """Raise `DataError` if the titles of a table are not those of pairs."""
    if len(table.titles) == 1 or (table.delimiter != "\t" and table.width == 1):
        raise DataError(
            f"{table.name} has 1 column in its first line, but a pair needs two. Separate the "
            "columns by commas, semicolons or tabs and name them source,target."
        )
    if lone := find_lone_title(table):
        raise DataError(f"{table.name} has a column '{lone[0]}' but no column '{lone[1]}'.")


def _suggest_columns(table: Table) -> str:
    """Return how to choose the last two of several texts; empty if others have clear titles."""
    texts = table.find_texts(range(table.width), minimum=2, maximum=2)
    if len(texts) < 3 or table.find_titled(SOURCE_TITLES | TARGET_TITLES):
        return ""
    roles = {texts[-2]: SOURCE, texts[-1]: TARGET}
    names = [table.title(index) for index in roles]
    if not all(names):
        names = [roles.get(index, SKIPPED) for index in range(texts[-1] + 1)]
    value = shlex.quote(",".join(names))
    return f"Choose others with `--columns`, such as `--columns {value}`."


def find_titled(table: Table, names: Sequence[str]) -> list[int]:
    """Return the columns with these titles, or raise an error that lists the titles."""
    titles = table.titles or (table.inspected[0] if table.inspected else [])
    if missing := find_missing(names, titles):
        unknown = next((name for name in missing if name not in COLUMNS), missing[0])
        roles = f", or each be {one_of(COLUMNS)}" if not table.titles else ""
        raise ConfigError(
            f"`columns` must be titles in the first line of {table.name}{roles}, but one is "
            f"'{unknown}'.{did_you_mean(unknown, [*titles, *COLUMNS])} The first line is "
            f"'{', '.join(titles)[:200]}'."
        )
    folded = [title.casefold() for title in titles]
    return [
        titles.index(name) if name in titles else folded.index(name.casefold()) for name in names
    ]


def _check_titles(table: Table, columns: Sequence[str]) -> None:
    """Raise `DataError` if the titles of a header contradict the roles of its columns."""
    if not table.titles:
        return
    _check_width(table.titles, columns, f"{table.name}, line 1,")
    expanded = expand_roles(columns, len(table.titles))
    for number, (title, column) in enumerate(zip(table.titles, expanded, strict=False), start=1):
        if column != SKIPPED and title in (SOURCE, TARGET) and title != column:
            raise DataError(
                f"{table.name} calls its column {number} '{title}', but `columns` call it "
                f"'{column}'. Name the columns in the order of the file."
            )


def log_roles(
    table: Table, sources: Sequence[int], targets: Sequence[int] = (), *, hint: str = ""
) -> None:
    """Log which column is taken as what, unless two columns of TSV without a header are a pair."""
    is_csv = table.delimiter != "\t"
    if not table.titles and table.width <= 2 and targets and not is_csv:
        return
    ignored = [index for index in range(table.width) if index not in (*sources, *targets)]
    taken = [
        _describe(table, sources, ("is the source", "are the sources")),
        _describe(table, targets, ("the target", "the targets")),
    ]
    rest = _describe(table, ignored, ("is ignored", "are ignored"))
    header = "the first line is not a header" if is_csv and not table.titles else ""
    message = "; ".join(filter(None, (header, ", ".join(filter(None, taken)), rest)))
    logger.info("%s: %s%s", table.name, message, f". {hint}" if hint else "")


def _describe(table: Table, indexes: Sequence[int], predicates: tuple[str, str]) -> str:
    """Return columns by number and title with a predicate: `column 1 'id' is ignored`."""
    names = [
        f"{index + 1} '{title}'" if (title := table.title(index)) else str(index + 1)
        for index in indexes
    ]
    singular, plural = predicates
    if len(names) < 2:
        return "".join(f"column {name} {singular}" for name in names)
    return f"columns {', '.join(names[:-1])} and {names[-1]} {plural}"


def one_line(text: str) -> str:
    """Join the lines of a text with spaces."""
    if "\n" in text or "\r" in text:
        text = re.sub(r"[\r\n]+", " ", text)
    return text.strip()


def read_rows(table: Table, chosen: Chosen, *, maximum: int = 0) -> Numbered:
    """Read examples from the chosen columns of a table.

    Args:
        table: The rows.
        chosen: Columns of sources and targets.
        maximum: Number of cells that a row may have; any number if 0.
    """
    sources, targets = chosen

    def convert(cells: list[str], location: str) -> Example:
        if len(cells) == 1 and table.delimiter == "\t":
            raise DataError(
                f"{location} has no tab. A line holds the source, a tab and the target."
            )
        check_cells(cells, location, minimum=max(*sources, *targets) + 1, maximum=maximum)
        return _to_example(cells, sources, targets)

    return convert_rows(table, convert)


def check_cells(cells: Sequence[str], location: str, *, minimum: int, maximum: int) -> None:
    """Raise `DataError` for a row with too few or too many cells."""
    if len(cells) < minimum:
        raise DataError(f"{location} has no column {minimum}: it has {len(cells)}.")
    if maximum and any(cells[maximum:]):
        raise DataError(
            f"{location} must have {_count(maximum)}, but has {len(cells)}. "
            "In CSV, quote cells that contain the delimiter."
        )


def _read_roles(cells: list[str], location: str, *, columns: Sequence[str]) -> Example:
    _check_width(cells, columns, location)
    sources, targets = find_roles(columns, len(cells))
    if SOURCES in columns:  # empty cells pad the rows of a table
        sources = [index for index in sources if cells[index].strip()] or sources[:1]
    return _to_example(cells, sources, targets)


def _to_example(cells: Sequence[str], sources: Sequence[int], targets: Sequence[int]) -> Example:
    texts = [one_cell(cells[index]) for index in targets]
    target, *references = list(filter(None, texts)) or [""]
    source = as_source([one_cell(cells[index]) for index in sources])
    return Example(source, target, references=tuple(references))


def one_cell(text: str) -> str:
    """Join the lines of a text with spaces, and replace tabs, which separate sources."""
    return one_line(text).replace("\t", " ")


def find_roles(columns: Sequence[str], num: int) -> Chosen:
    """Return the columns of sources and targets of a row with `num` columns, by their roles."""
    roles = expand_roles(columns, num)
    return find_columns(roles, SOURCE), find_columns(roles, TARGET)


def expand_roles(columns: Sequence[str], num: int) -> list[str]:
    """Replace `sources` by one 'source' for each column it stands for, to `num` columns in all."""
    num_sources = num - len(columns) + 1
    return [
        name
        for column in columns
        for name in ([SOURCE] * num_sources if column == SOURCES else [column])
    ]


def _check_width(cells: Sequence[str], columns: Sequence[str], location: str) -> None:
    if len(cells) < len(columns):
        raise DataError(
            f"{location} has {_count(len(cells))}, but `columns` name {len(columns)}: "
            f"'{','.join(columns)}'."
        )


def find_columns(columns: Sequence[str], name: str) -> list[int]:
    """Return the indexes of the columns with a role."""
    return [index for index, column in enumerate(columns) if column == name]


def _count(num: int) -> str:
    return "1 column" if num == 1 else f"{num} columns"
