"""Columns of TSV and CSV files that hold sources, targets or neither."""

import re
from collections.abc import Sequence
from functools import partial

from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.core.tables import did_you_mean, one_of
from regard.data.example import Example, Numbered
from regard.data.text.tables import (
    SOURCE_TITLES,
    TARGET_TITLES,
    Table,
    convert_rows,
    find_missing,
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


def read_tsv_pairs(name: str, lines: list[str], *, columns: Sequence[str] = ()) -> Numbered:
    """Read lines of tab-separated columns, below a header if the first line is one."""
    return _read_pairs(read_tsv(name, lines, names=find_titles(columns)), columns)


def read_csv_pairs(name: str, lines: list[str], *, columns: Sequence[str] = ()) -> Numbered:
    """Read rows of a CSV file below its header."""
    return _read_pairs(read_csv(name, lines), columns)


def read_two_columns(name: str, lines: list[str]) -> Numbered:
    """Read source and target from the first two columns of lines without a header."""
    table = Table(name, "\t", [], split_lines(lines), [])
    return convert_rows(table, partial(_to_pair, roles=[SOURCE, TARGET], delimiter="\t"))


def _read_pairs(table: Table, columns: Sequence[str]) -> Numbered:
    if find_titles(columns):
        *sources, target = find_titled(table, columns)
        log_roles(table, sources, [target])
        return convert_rows(table, partial(_to_titled, sources=sources, target=target))
    if columns:
        _check_titles(table, columns)
        if table.width >= len(columns):
            roles = expand_roles(columns, table.width)
            log_roles(table, find_columns(roles, SOURCE), find_columns(roles, TARGET))
        return convert_rows(table, partial(_to_example, columns=columns))
    source, target = _find_pair(table)
    roles = [SKIPPED] * (max(source, target) + 1)
    roles[source], roles[target] = SOURCE, TARGET
    return convert_rows(table, partial(_to_pair, roles=roles, delimiter=table.delimiter))


def _find_pair(table: Table) -> tuple[int, int]:
    """Return the columns of source and target by their titles and contents, and log them.

    They are the columns with these titles, or the first two that do not hold ids.
    """
    columns = range(max(table.width, 2))
    if len(table.titles) == 1:
        raise DataError(
            f"{table.name} has 1 column in its first line, but a pair needs two. Separate the "
            "columns by commas, semicolons or tabs and name them source,target."
        )
    for title, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        if title in table.titles and other not in table.titles:
            raise DataError(f"{table.name} has a column '{title}' but no column '{other}'.")
    sources = [index for index in columns if table.is_titled(index, SOURCE_TITLES)]
    targets = [index for index in columns if table.is_titled(index, TARGET_TITLES)]
    if sources and targets:
        log_roles(table, sources[:1], targets[:1])
        return sources[0], targets[0]
    texts = without_ids(table, columns, minimum=2)
    hint = ""
    if len(texts) > 2:
        hint = f"Choose others with `--columns`, such as `--columns {_last_two(table, texts)}`."
    log_roles(table, texts[:1], texts[1:2], hint=hint)
    return texts[0], texts[1]


def without_ids(table: Table, columns: Sequence[int], *, minimum: int) -> list[int]:
    """Return columns without those of ids; all of them if fewer than `minimum` would be left."""
    ids = table.find_ids()
    texts = [index for index in columns if index not in ids]
    return texts if len(texts) >= minimum else list(columns)


def _last_two(table: Table, texts: Sequence[int]) -> str:
    """Return the value of `--columns` that takes the last two texts as source and target."""
    if table.titles:
        return ",".join(table.titles[index] for index in texts[-2:])
    roles = {texts[-2]: SOURCE, texts[-1]: TARGET}
    return ",".join(roles.get(index, SKIPPED) for index in range(texts[-1] + 1))


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
    """Log which column is taken as what, unless two columns without a header are a pair."""
    if not table.titles and table.width <= 2 and targets:
        return
    ignored = [index for index in range(table.width) if index not in (*sources, *targets)]
    taken = [
        _describe(table, sources, ("is the source", "are the sources")),
        _describe(table, targets, ("the target", "the targets")),
    ]
    rest = _describe(table, ignored, ("is ignored", "are ignored"))
    message = "; ".join(filter(None, (", ".join(filter(None, taken)), rest)))
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
    return re.sub(r"[\r\n]+", " ", text).strip()


def _to_example(cells: list[str], location: str, *, columns: Sequence[str]) -> Example:
    _check_width(cells, columns, location)
    join = as_nonempty_source if SOURCES in columns else as_source
    columns = expand_roles(columns, len(cells))
    sources = [one_line(cells[index]) for index in find_columns(columns, SOURCE)]
    targets = [one_line(cells[index]) for index in find_columns(columns, TARGET)]
    target, *references = [text for text in targets if text] or [""]
    return Example(join(sources), target, references=tuple(references))


def _to_pair(cells: list[str], location: str, *, roles: Sequence[str], delimiter: str) -> Example:
    if len(cells) == 1 and delimiter == "\t":
        raise DataError(f"{location} has no tab. A line holds the source, a tab and the target.")
    if len(cells) < len(roles):
        raise DataError(f"{location} has no column {len(roles)}: it has {len(cells)}.")
    return _to_example(cells, location, columns=roles)


def _to_titled(cells: list[str], location: str, *, sources: list[int], target: int) -> Example:
    width = max(*sources, target) + 1
    if len(cells) < width:
        raise DataError(f"{location} has no column {width}: it has {len(cells)}.")
    texts = [one_line(cells[index]) for index in sources]
    return Example(as_source(texts), one_line(cells[target]))


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
