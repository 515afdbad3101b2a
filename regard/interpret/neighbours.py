"""Nearest neighbours of sources by the cosine similarity of their vectors."""

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
"""Number of queries to compare with all sources at once, to limit memory."""


@dataclass(frozen=True)
class Neighbour:
    """A source and its similarity to a query."""

    source: str
    """The source as one line."""
    similarity: float
    """Cosine similarity, from -1 to 1."""


def find_neighbours(
    task: Task[Any],
    sources: Sequence[Any],
    queries: Sequence[Any] | None = None,
    *,
    num: int = 5,
    layer: int | None = None,
    pooling: str | None = None,
) -> list[tuple[str, list[Neighbour]]]:
    """Return each query with its nearest sources, the nearest first.

    Args:
        task: A run with an encoder.
        sources: Candidates; duplicates, empty and unreadable ones are dropped.
        queries: Queries; empty and unreadable ones are dropped. If not given, each source is a
            query among the other sources.
        num: Number of neighbours per query.
        layer: As for `embed`.
        pooling: As for `embed`.
    """
    candidates = drop_unreadable_sources(task, _distinct(sources))
    kept = candidates
    if queries is not None:
        kept = drop_unreadable_sources(task, [query for query in queries if _line(query)])
    if len(candidates) < (2 if queries is None else 1) or not kept:
        raise DataError(
            "Neighbours need at least one query and one other line, but there are "
            f"{len(kept)} queries and {len(candidates)} distinct lines that are not empty."
        )
    vectors = embed(task, candidates, layer=layer, pooling=pooling)
    query_vectors = vectors if queries is None else embed(task, kept, layer=layer, pooling=pooling)
    num = min(num, len(candidates) - (1 if queries is None else 0))
    results: list[tuple[str, list[Neighbour]]] = []
    for start in range(0, len(kept), CHUNK):
        similarities = cosines(query_vectors[start : start + CHUNK], vectors)
        if queries is None:
            # A source is not its own neighbour.
            rows = np.arange(len(similarities))
            similarities[rows, start + rows] = -np.inf
        for row, indices in zip(similarities, nearest(similarities, num), strict=True):
            near = [Neighbour(_line(candidates[index]), float(row[index])) for index in indices]
            results.append((_line(kept[len(results)]), near))
    return results


def _distinct(sources: Sequence[Any]) -> list[Any]:
    """Return the sources without empty lines and duplicates."""
    by_line: dict[str, Any] = {}
    for source in sources:
        by_line.setdefault(_line(source), source)
    return [source for line, source in by_line.items() if line]


def _line(source: Any) -> str:
    return as_text(source).strip()
