"""Sources of a file at prediction time: its lines, or the source columns of a file of pairs."""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.text.columns import (
    SOURCE,
    SOURCES,
    as_roles,
    expand_roles,
    find_columns,
    find_titled,
    find_titles,
    log_roles,
    one_line,
    without_ids,
)
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.readers import Record, find_suffix, parse_record, read_texts
from regard.data.text.tables import (
    LABEL_TITLES,
    NUM_INSPECTED,
    SOURCE_TITLES,
    TARGET_TITLES,
    Table,
    find_missing,
    is_known,
    read_csv,
    read_tsv,
)


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
        return _read_json_sources(name, lines, columns=columns, labels=labels)
    if suffix == ".csv" and _has_csv_header(filled[:1]):
        return _read_cells(read_csv(name, lines), columns, labels)
    if 2 * sum("\t" in line for line in filled) > len(filled):
        titles = find_titles(columns)[:-1]
        table = read_tsv(name, lines, names=titles, num_inspected=len(first))
        return _read_cells(table, columns, labels)
    return lines


def _is_record(line: str) -> bool:
    """Return whether a line of standard input is an object with a source, not a text with `{`."""
    try:
        record = parse_record(line, "")
    except DataError:
        return False
    return bool(SOURCE_TITLES & {*record.texts}) or record.texts is not record.fields


def _has_csv_header(lines: Sequence[str]) -> bool:
    """Return whether the first line has several titles, or a known one; else it is a text."""
    titles = read_csv("", lines).titles
    return len(titles) > 1 or any(is_known(title.casefold()) for title in titles)


def _read_cells(table: Table, columns: Sequence[str], labels: Collection[str]) -> Iterator[str]:
    """Yield the source cells of each row, joined by tabs."""
    indexes = _find_source_columns(table, columns, labels)
    if indexes is not None:
        log_roles(table, indexes)
    for number, cells in table.rows:
        texts = [" ".join(one_line(cell).split("\t")) for cell in cells]
        if indexes is None or len(texts) in (0, 1, len(indexes)):
            yield "\t".join(texts)
        elif len(texts) > max(indexes):
            yield "\t".join(texts[index] for index in indexes)
        else:
            raise DataError(
                f"{table.name}, line {number:,}, has no column {max(indexes) + 1}: it has "
                f"{len(texts)}."
            )


def _find_source_columns(
    table: Table, columns: Sequence[str], labels: Collection[str]
) -> list[int] | None:
    """Return the columns of sources; None if rows hold nothing else."""
    names, roles = find_titles(columns)[:-1], as_roles(columns)
    every = range(table.width)
    texts = without_ids(table, every, minimum=1)
    titled = [index for index in every if table.is_titled(index, SOURCE_TITLES)]
    has_names = not find_missing(names, table.titles)
    if names and table.titles and (has_names or (len(texts) > len(names) and not titled)):
        return find_titled(table, names)
    if SOURCES in roles:
        # A row of TSV holds only sources, whose number varies.
        is_whole = table.delimiter != "\t" and table.width >= len(roles)
        return find_columns(expand_roles(roles, table.width), SOURCE) if is_whole else None
    sources = find_columns(roles, SOURCE)
    if len(sources) > 1 or (sources and not names):
        return sources if table.width > len(sources) else None
    if labels:
        return _find_labelled_texts(table, labels)
    # A number may be the source of a line of two columns, unless there is a header.
    return (titled or (texts if table.titles or table.width > 2 else [*every]))[:1]


def _find_labelled_texts(table: Table, labels: Collection[str]) -> list[int] | None:
    every = range(table.width)
    targets = [index for index in every if table.is_titled(index, LABEL_TITLES | TARGET_TITLES)]
    if not targets:
        last = table.cells(table.width - 1)
        targets = [*every[-1:]] if 2 * sum(cell in labels for cell in last) > len(last) else []
    if not (targets or table.titles):
        return None
    texts = [index for index in every if index not in targets]
    return without_ids(table, texts, minimum=1)


def _read_json_sources(
    name: str, lines: Iterator[str], *, columns: Sequence[str], labels: Collection[str]
) -> Iterator[str]:
    """Yield the source of each object; an empty line is an empty source."""
    names, roles = find_titles(columns)[:-1], as_roles(columns)
    # A list of texts is one text, unless the model reads several.
    has_several = bool(labels) or SOURCES in roles or roles.count(SOURCE) > 1
    keys: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            yield ""
            continue
        location = f"{name}, line {number:,},"
        record = parse_record(line, location)
        if not keys or any(key not in record.texts for key in keys):
            keys = _find_source_keys(record, names, location)
            if not SOURCE_TITLES & {*keys}:
                logger.info("%s: '%s' is the source", name, "' and '".join(keys))
        texts = [read_texts(record, key, location) for key in keys]
        parts = texts[0] if has_several and len(keys) == 1 else map(" ".join, texts)
        yield "\t".join(" ".join(part.split("\t")) for part in parts)


def _find_source_keys(record: Record, names: Sequence[str], location: str) -> list[str]:
    keys = [*record.texts]
    missing = [name for name in names if name not in keys]
    if names and not missing:
        return list(names)
    titled = [key for key in keys if key in SOURCE_TITLES]
    found = titled or record.text_keys()
    if not found or (names and len(found) > 1 and not titled):
        raise DataError(
            f"{location} has no key `{missing[0] if names else SOURCE}`. "
            f"Its keys are: {', '.join(keys) or 'none'}."
        )
    return found[:1]
