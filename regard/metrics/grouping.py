"""Metrics on parts of a test set: by length, by tag, by position in the sentence."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from regard.core.config import at_least
from regard.core.errors import ConfigError, DataError
from regard.core.tables import pick
from regard.metrics.result import Group, Metric, References, Result, Texts, check_references
from regard.metrics.text.bleu import bleu
from regard.metrics.text.error_rates import UNITS, Unit, accuracy


def by_length(
    sources: Sequence[str | tuple[str, ...]],
    hypotheses: Texts,
    references: References,
    *,
    unit: Unit = "word",
    edges: Sequence[int] = (10, 20, 30, 40, 50, 60),
    measures: Mapping[str, Metric] | None = None,
) -> list[Group]:
    """Measure sentences of similar length together, short ones first; empty groups are left out.

    Bahdanau et al. 2015, figure 2.

    Args:
        sources: One sentence each, or several texts, whose lengths are added up.
        hypotheses: One sentence each.
        references: For each hypothesis its references.
        unit: What a length counts: words between whitespace, or characters.
        edges: The most units of each group; one more group holds what is longer.
        measures: What to measure, by name; BLEU if not given.
    """
    if list(edges) != sorted(set(edges)):
        raise ConfigError(f"`edges` must ascend, but is {tuple(edges)}.")
    check_references(hypotheses, references, {"sources": sources})
    names = _length_names(edges)
    members: dict[str, list[int]] = {name: [] for name in names}
    cut = pick(UNITS, unit, "unit")
    lengths = [
        sum(len(cut(text)) for text in ((source,) if isinstance(source, str) else source))
        for source in sources
    ]
    for row, length in enumerate(lengths):
        members[names[bisect_left(edges, length)]].append(row)
    groups = _measure(members, hypotheses, references, measures=measures or {"bleu": bleu})
    return [
        replace(group, place=sum(lengths[row] for row in members[group.name]) / group.count)
        for group in groups
    ]


def by_tag(
    tags: Sequence[Sequence[str]],
    hypotheses: Texts,
    references: References,
    *,
    measures: Mapping[str, Metric] | None = None,
) -> list[Group]:
    """Measure sentences with the same tag together, tags in alphabetical order.

    Args:
        tags: For each sentence the names of its phenomena; it counts in the group of each.
        hypotheses: One sentence each.
        references: For each hypothesis its references.
        measures: What to measure, by name; BLEU and accuracy if not given.
    """
    check_references(hypotheses, references, {"tags": tags})
    members: dict[str, list[int]] = {name: [] for name in sorted({t for row in tags for t in row})}
    for row, names in enumerate(tags):
        for name in set(names):
            members[name].append(row)
    measures = measures or {"bleu": bleu, "accuracy": accuracy}
    return _measure(members, hypotheses, references, measures=measures)


def by_position(hits: Sequence[Sequence[bool]], *, num_parts: int = 10) -> list[Group]:
    """Measure how many words are right at the beginning of a target, later, and at its end.

    Every target is cut into equally long parts; a word that reaches over a cut counts in both
    parts by its share. So every target is in every part, long or short.

    Args:
        hits: For each target, for each of its words: is it right?
        num_parts: Number of parts.
    """
    at_least("num_parts", num_parts, 1)
    filled = [np.asarray(row, dtype=float) for row in hits if len(row)]
    if not filled:
        raise DataError("`hits` must hold at least one target with a word, but has none.")
    right = sum(np.repeat(row, num_parts).reshape(num_parts, -1).sum(axis=1) for row in filled)
    num_words = sum(map(len, filled))
    edges = np.linspace(0, 100, num_parts + 1)
    signature = "unit:word|average:corpus|position:relative"
    return [
        Group(
            name=f"{low:.0f}–{high:.0f} %",
            count=len(filled),
            results={"accuracy": Result("accuracy", 100 * float(value) / num_words, signature)},
            place=float(low + high) / 2,
        )
        for low, high, value in zip(edges, edges[1:], np.atleast_1d(right), strict=False)
    ]


def _length_names(edges: Sequence[int]) -> list[str]:
    if not edges:
        return ["all"]
    between = [f"{low + 1}–{high}" for low, high in zip(edges, edges[1:], strict=False)]
    return [f"≤ {edges[0]}", *between, f"> {edges[-1]}"]


def _measure(
    members: Mapping[str, Sequence[int]],
    hypotheses: Texts,
    references: References,
    *,
    measures: Mapping[str, Metric],
) -> list[Group]:
    groups = []
    for name, rows in members.items():
        if not rows:
            continue
        sides = [hypotheses[row] for row in rows], [references[row] for row in rows]
        results = {key: measure(*sides) for key, measure in measures.items()}
        groups.append(Group(name, len(rows), results))
    return groups
