"""The sources that an encoder takes to be alike: nearest by the cosine of their vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.core.errors import DataError
from regard.data.text.field import as_text
from regard.interpret.embed import drop_unreadable_sources, embed
from regard.metrics.representation.vectors import cosines, nearest
from regard.tasks.base import Task

CHUNK = 500
"""Queries that are compared with all lines at once; of all, there would be too many numbers."""


@dataclass(frozen=True)
class Neighbour:
    """A source that is like another."""

    source: str
    """As one line."""
    similarity: float
    """The cosine of both vectors, from -1 to 1."""


def find_neighbours(
    task: Task[Any],
    sources: Sequence[Any],
    queries: Sequence[Any] | None = None,
    *,
    num: int = 5,
    layer: int | None = None,
    pooling: str | None = None,
) -> list[tuple[str, list[Neighbour]]]:
    """Return each query with the sources nearest to it, the nearest first.

    Args:
        task: A run with an encoder.
        sources: Where to look; equal ones count once, empty and unreadable ones not.
        queries: What to look for, empty and unreadable ones left out; if not given, each source
            among the others.
        num: How many neighbours a query.
        layer: As for `embed`.
        pooling: As for `embed`.
    """
    candidates = drop_unreadable_sources(task, _distinct(sources))
    asked = candidates
    if queries is not None:
        asked = drop_unreadable_sources(task, [query for query in queries if _line(query)])
    if len(candidates) < (2 if queries is None else 1) or not asked:
        raise DataError(
            "Neighbours need something to look for and something else to find, but there are "
            f"{len(asked)} queries and {len(candidates)} distinct lines that are not empty."
        )
    vectors = embed(task, candidates, layer=layer, pooling=pooling)
    own = vectors if queries is None else embed(task, asked, layer=layer, pooling=pooling)
    num = min(num, len(candidates) - (1 if queries is None else 0))
    found: list[tuple[str, list[Neighbour]]] = []
    for start in range(0, len(asked), CHUNK):
        similar = cosines(own[start : start + CHUNK], vectors)
        if queries is None:
            # Nobody is one's own neighbour.
            rows = np.arange(len(similar))
            similar[rows, start + rows] = -np.inf
        for row, places in zip(similar, nearest(similar, num), strict=True):
            near = [Neighbour(_line(candidates[place]), float(row[place])) for place in places]
            found.append((_line(asked[len(found)]), near))
    return found


def _distinct(sources: Sequence[Any]) -> list[Any]:
    """Return the first of each that make the same line, without empty ones."""
    first: dict[str, Any] = {}
    for source in sources:
        first.setdefault(_line(source), source)
    return [source for line, source in first.items() if line]


def _line(source: Any) -> str:
    return as_text(source).strip()
