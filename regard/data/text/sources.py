"""Sources of a file at prediction time: its lines, or the source columns of a file of pairs."""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice

from regard.core.errors import DataError
from regard.data.text.choice import find_labelled, find_source
from regard.data.text.columns import (
    SOURCE,
    SOURCES,
    as_roles,
    check_cells,
    find_columns,
    find_roles,
    find_titled,
    find_titles,
    log_roles,
    one_cell,
)
from regard.data.text.headers import (
    LABEL_TITLES,
    SOURCE_TITLES,
    TARGET_TITLES,
    find_missing,
    is_known,
)
from regard.data.text.json_lines import find_keys, log_keys, parse_record, read_texts
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.readers import find_suffix
from regard.data.text.tables import NUM_INSPECTED, Table, read_csv, read_tsv


def read_sources(
    path: str, *, columns: Sequence[str] = (), labels: Collection[str] = ()
) -> Iterator[str]:
    """Read a source from each line, or row, of a file; several texts are separated by tabs.

    CSV, JSON lines and TSV are files of pairs, whose source columns are taken; a log line reports
    which. The lines of other files are returned as they are. Standard input is read line by line:
    its first line determines what it is.

    Args:
        path: The file, plain or `.gz`, or `-` for standard input.
        columns: Columns of the training data, as for `read_examples`.
        labels: Labels of a classifier, which end the lines of labelled texts. If given, lines of
            several texts are sources, too.
    """
    lines = read_lines(path)
    first = list(islice(lines, 1 if path == STANDARD_INPUT else NUM_INSPECTED))
    lines = chain(first, lines)
    filled = [line for line in first if line.strip()]
    name, suffix = file_name(path), find_suffix(path, first)
    if suffix == ".jsonl" and (path != STANDARD_INPUT or _is_record(filled[0])):
        return _read_json_sources(name, lines, first, columns=columns, labels=labels)
    names = find_titles(columns)[:-1]
    if suffix == ".csv":
        try:
            table = read_csv(name, lines, names=names)
        except DataError:
            if _is_csv(filled[:1]):
                raise
            return read_lines(path)
        return _read_cells(table, columns, labels) if _is_table(table) else read_lines(path)
    if 2 * sum("\t" in line for line in filled) > len(filled):
        table = read_tsv(name, lines, names=names, num_inspected=len(first))
        return _read_cells(table, columns, labels)
    return lines


def _is_record(line: str) -> bool:
    """Return whether a line of standard input is an object with a source, not a text with `{`."""
    try:
        record = parse_record(line, "")
    except DataError:
        return False
    return bool(SOURCE_TITLES & {*record.texts}) or record.texts is not record.fields


def _is_csv(lines: Sequence[str]) -> bool:
    """Return whether lines are valid CSV, unlike a text such as `"No`."""
    try:
        read_csv("", lines)
    except DataError:
        return False
    return True


def _is_table(table: Table) -> bool:
    """Return whether titles are known or most rows have as many cells; else they are texts."""
    if table.titles and all(is_known(title.casefold()) for title in table.titles):
        return True
    num_equal = sum(len(cells) == table.width for cells in table.inspected)
    return table.width > 1 and 2 * num_equal > len(table.inspected)


def _read_cells(table: Table, columns: Sequence[str], labels: Collection[str]) -> Iterator[str]:
    """Yield the source cells of each row, joined by tabs."""
    indexes = _find_source_columns(table, columns, labels)
    if indexes is not None:
        log_roles(table, indexes)
    for number, cells in table.rows:
        texts = [one_cell(cell) for cell in cells]
        if indexes is None or len(texts) in (0, 1, len(indexes)):
            yield "\t".join(texts)
            continue
        location = f"{table.name}, line {number:,},"
        check_cells(texts, location, minimum=max(indexes) + 1, maximum=len(table.titles))
        yield "\t".join(texts[index] for index in indexes)


def _find_source_columns(
    table: Table, columns: Sequence[str], labels: Collection[str]
) -> list[int] | None:
    """Return the columns of sources; None if rows hold nothing else."""
    names, roles = find_titles(columns)[:-1], as_roles(columns)
    texts = table.find_texts(range(table.width), minimum=1, maximum=2)
    has_names = not find_missing(names, table.titles)
    has_titled = bool(table.find_titled(SOURCE_TITLES))
    if names and table.titles and (has_names or (len(texts) > len(names) and not has_titled)):
        return find_titled(table, names)
    if SOURCES in roles:
        # A row of TSV holds only sources, whose number varies.
        is_whole = table.delimiter != "\t" and table.width >= len(roles)
        return find_roles(roles, table.width)[0] if is_whole else None
    sources = find_columns(roles, SOURCE)
    if len(sources) > 1 or (sources and not names):
        return sources if table.width > len(sources) else None
    return _find_labelled_texts(table, labels) if labels else find_source(table)


def _find_labelled_texts(table: Table, labels: Collection[str]) -> list[int] | None:
    """Return the columns of texts beside a label; None if rows hold texts only."""
    texts, label = find_labelled(table)
    cells = table.cells(label[0])
    if table.find_titled(LABEL_TITLES | TARGET_TITLES) or 2 * sum(
        cell in labels for cell in cells
    ) > len(cells):
        return texts
    every = range(table.width)
    return table.find_texts(every, minimum=1, maximum=2) if table.titles else None


def _read_json_sources(
    name: str,
    lines: Iterator[str],
    first: Sequence[str],
    *,
    columns: Sequence[str],
    labels: Collection[str],
) -> Iterator[str]:
    """Yield the source of each object; an empty line is an empty source."""
    roles = as_roles(columns)
    # A list of texts is one text, unless the model reads several.
    has_several = bool(labels) or SOURCES in roles or roles.count(SOURCE) > 1
    keys: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            yield ""
            continue
        location = f"{name}, line {number:,},"
        record = parse_record(line, location)
        if not keys:
            keys = _find_source_keys(record.as_table(location, first), columns, labels)
            if not SOURCE_TITLES & {*keys}:
                log_keys(name, keys)
        texts = [read_texts(record, key, location) for key in keys]
        parts = texts[0] if has_several and len(keys) == 1 else map(" ".join, texts)
        yield "\t".join(map(one_cell, parts))


def _find_source_keys(table: Table, columns: Sequence[str], labels: Collection[str]) -> list[str]:
    names = find_titles(columns)[:-1]
    titled = table.find_titled(SOURCE_TITLES)
    texts = table.find_texts(range(table.width), minimum=1, maximum=1)
    if names and (not find_missing(names, table.titles) or (len(texts) > 1 and not titled)):
        return find_keys(table, names)
    if not table.titles:
        raise DataError(f"{table.name} has no key `{SOURCE}`. Its keys are: none.")
    indexes = titled[:1] or _find_source_columns(table, (), labels) or []
    return [table.titles[index] for index in indexes]
