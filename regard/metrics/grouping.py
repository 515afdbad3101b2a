"""The same measure on parts of a test set: by length, by phenomenon."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regard.core.errors import ConfigError, DataError
from regard.metrics.accuracy import accuracy
from regard.metrics.result import Measure, Result, check_references
from regard.metrics.text import bleu


@dataclass(frozen=True)
class Group:
    """One part of a test set and what was measured on it."""

    name: str
    """What its sentences have in common."""
    count: int
    """Number of its sentences."""
    results: dict[str, Result] = field(default_factory=dict)
    """Each measure by its name."""


def by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    edges: Sequence[int] = (10, 20, 30, 40, 50, 60),
    measures: Mapping[str, Measure] | None = None,
) -> list[Group]:
    """Measure sentences of similar length together, short ones first; empty groups are left out.

    Bahdanau et al. 2015, figure 2.

    Args:
        sources: One sentence each, words separated by blanks.
        hypotheses: One sentence each.
        references: For each hypothesis its references.
        edges: The most words of each group; one more group holds what is longer.
        measures: What to measure, by name; BLEU if not given.
    """
    if list(edges) != sorted(set(edges)):
        raise ConfigError(f"`edges` must ascend, but is {tuple(edges)}.")
    check_references(hypotheses, references)
    _check_length("sources", sources, hypotheses)
    names = _length_names(edges)
    members: dict[str, list[int]] = {name: [] for name in names}
    for row, source in enumerate(sources):
        members[names[bisect_left(edges, len(source.split()))]].append(row)
    return _measure(members, hypotheses, references, measures=measures or {"bleu": bleu})


def by_tag(
    tags: Sequence[Sequence[str]],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    measures: Mapping[str, Measure] | None = None,
) -> list[Group]:
    """Measure sentences with the same tag together, tags in alphabetical order.

    Args:
        tags: For each sentence the names of its phenomena; it counts in the group of each.
        hypotheses: One sentence each.
        references: For each hypothesis its references.
        measures: What to measure, by name; BLEU and accuracy if not given.
    """
    check_references(hypotheses, references)
    _check_length("tags", tags, hypotheses)
    members: dict[str, list[int]] = {name: [] for name in sorted({t for row in tags for t in row})}
    for row, names in enumerate(tags):
        for name in set(names):
            members[name].append(row)
    measures = measures or {"bleu": bleu, "accuracy": accuracy}
    return _measure(members, hypotheses, references, measures=measures)


def _check_length(name: str, values: Sequence[object], hypotheses: Sequence[str]) -> None:
    if len(values) != len(hypotheses):
        raise DataError(
            f"`{name}` and `hypotheses` must have equal length, "
            f"but there are {len(values):,} and {len(hypotheses):,}."
        )


def _length_names(edges: Sequence[int]) -> list[str]:
    if not edges:
        return ["all"]
    between = [f"{low + 1}–{high}" for low, high in zip(edges, edges[1:], strict=False)]
    return [f"≤ {edges[0]}", *between, f"> {edges[-1]}"]


def _measure(
    members: Mapping[str, Sequence[int]],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    measures: Mapping[str, Measure],
) -> list[Group]:
    groups = []
    for name, rows in members.items():
        if not rows:
            continue
        chosen = [hypotheses[row] for row in rows]
        answers = [references[row] for row in rows]
        results = {key: measure(chosen, answers) for key, measure in measures.items()}
        groups.append(Group(name, len(rows), results))
    return groups
