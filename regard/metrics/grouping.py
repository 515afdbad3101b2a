"""Metrics on parts of a test set: by length, by tag, by position in the target."""

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
    metrics: Mapping[str, Metric] | None = None,
) -> list[Group]:
    """Compute metrics per group of source length, shortest first; empty groups are omitted.

    Bahdanau et al. 2015, figure 2.

    Args:
        sources: One sentence each, or several texts, whose lengths are added up.
        hypotheses: One sentence each.
        references: For each hypothesis its references.
        unit: Unit of lengths: whitespace-separated words, or characters.
        edges: Maximum length of each group; one further group has all longer sentences.
        metrics: Metrics by name; BLEU if not given.
    """
    if list(edges) != sorted(set(edges)):
        raise ConfigError(f"`edges` must be in ascending order, but is {tuple(edges)}.")
    check_references(hypotheses, references, {"sources": sources})
    names = _length_names(edges)
    members: dict[str, list[int]] = {name: [] for name in names}
    tokenize = pick(UNITS, unit, "unit")
    lengths = [
        sum(len(tokenize(text)) for text in ((source,) if isinstance(source, str) else source))
        for source in sources
    ]
    for row, length in enumerate(lengths):
        members[names[bisect_left(edges, length)]].append(row)
    groups = _score_groups(members, hypotheses, references, metrics=metrics or {"bleu": bleu})
    return [
        replace(group, position=sum(lengths[row] for row in members[group.name]) / group.count)
        for group in groups
    ]


def by_tag(
    tags: Sequence[Sequence[str]],
    hypotheses: Texts,
    references: References,
    *,
    metrics: Mapping[str, Metric] | None = None,
) -> list[Group]:
    """Compute metrics per tag, in alphabetical order.

    Args:
        tags: For each sentence the names of its phenomena; it is in the group of each.
        hypotheses: One sentence each.
        references: For each hypothesis its references.
        metrics: Metrics by name; BLEU and accuracy if not given.
    """
    check_references(hypotheses, references, {"tags": tags})
    members: dict[str, list[int]] = {name: [] for name in sorted({t for row in tags for t in row})}
    for row, names in enumerate(tags):
        for name in set(names):
            members[name].append(row)
    metrics = metrics or {"bleu": bleu, "accuracy": accuracy}
    return _score_groups(members, hypotheses, references, metrics=metrics)


def by_position(hits: Sequence[Sequence[bool]], *, num_parts: int = 10) -> list[Group]:
    """Compute the accuracy of words by relative position in the target, in percent.

    Every target is divided into equally long parts. A word that overlaps two parts counts
    fractionally in both, so targets of any length contribute to every part.

    Args:
        hits: Whether each word of each target is correct.
        num_parts: Number of parts.
    """
    at_least("num_parts", num_parts, 1)
    rows = [np.asarray(row, dtype=float) for row in hits if len(row)]
    if not rows:
        raise DataError("`hits` must hold at least one target with a word, but has none.")
    correct = sum(np.repeat(row, num_parts).reshape(num_parts, -1).sum(axis=1) for row in rows)
    num_words = sum(map(len, rows))
    edges = np.linspace(0, 100, num_parts + 1)
    signature = "unit:word|average:corpus|position:relative"
    return [
        Group(
            name=f"{low:.0f}–{high:.0f} %",
            count=len(rows),
            results={"accuracy": Result("accuracy", 100 * float(value) / num_words, signature)},
            position=float(low + high) / 2,
        )
        for low, high, value in zip(edges, edges[1:], np.atleast_1d(correct), strict=False)
    ]


def _length_names(edges: Sequence[int]) -> list[str]:
    if not edges:
        return ["all"]
    between = [f"{low + 1}–{high}" for low, high in zip(edges, edges[1:], strict=False)]
    return [f"≤ {edges[0]}", *between, f"> {edges[-1]}"]


def _score_groups(
    members: Mapping[str, Sequence[int]],
    hypotheses: Texts,
    references: References,
    *,
    metrics: Mapping[str, Metric],
) -> list[Group]:
    groups = []
    for name, rows in members.items():
        if not rows:
            continue
        pair = [hypotheses[row] for row in rows], [references[row] for row in rows]
        results = {key: metric(*pair) for key, metric in metrics.items()}
        groups.append(Group(name, len(rows), results))
    return groups
