"""Choice of the columns of sources and targets by title and contents."""

from typing import TypeAlias

from regard.data.text.headers import LABEL_TITLES, METADATA_TITLES, SOURCE_TITLES, TARGET_TITLES
from regard.data.text.tables import Table

Chosen: TypeAlias = tuple[list[int], list[int]]
"""Columns of the sources and of the targets."""


def find_pair(table: Table) -> Chosen:
    """Return the columns of source and target: those with these titles, or the first texts."""
    sources = table.find_titled(SOURCE_TITLES)[:1]
    targets = table.find_titled(TARGET_TITLES)[:1]
    others = [index for index in range(max(table.width, 2)) if index not in sources + targets]
    num = 2 - len(sources) - len(targets)
    texts = table.find_texts(others, minimum=num, maximum=num)
    return sources or texts[:1], targets or texts[1 - len(sources) :][:1]


def has_pair(table: Table) -> bool:
    """Return whether there are titles of both source and target."""
    return bool(table.find_titled(SOURCE_TITLES) and table.find_titled(TARGET_TITLES))


def find_source(table: Table) -> list[int]:
    """Return the source column of a table that may lack targets: that of a pair, or a text."""
    sources, _ = find_pair(table)
    metadata, targets = table.find_metadata(), table.find_titled(TARGET_TITLES)
    texts = [index for index in range(table.width) if index not in metadata + targets]
    return texts[:1] if texts and sources[0] in metadata else sources


def find_labelled(table: Table) -> Chosen:
    """Return the columns of one or two texts and of their label.

    The label has its title, or is in the last column that is not metadata.
    """
    every = range(table.width)
    metadata = table.find_titled(METADATA_TITLES)
    others = [index for index in every if index not in metadata]
    last = others[-1:] if len(others) > 1 else [*every[-1:]]
    label = table.find_titled(LABEL_TITLES | TARGET_TITLES)[-1:] or last
    texts = [index for index in every if index not in label]
    return table.find_texts(texts, minimum=1, maximum=2), label


def find_lone_title(table: Table) -> tuple[str, str] | None:
    """Return the title of a pair that a table has, and the other one, which it lacks."""
    for title, other in (("source", "target"), ("target", "source")):
        if table.find_titled((title,)) and not has_pair(table):
            return title, other
    return None
