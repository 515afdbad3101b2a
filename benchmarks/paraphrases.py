"""Retrieval of paraphrases by the sentence vectors of translation models.

German translations of one English sentence are paraphrases of each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from prepare import paraphrase_splits
from results import Row, rounded

from regard.data.example import Example
from regard.interpret.embed import embed, project
from regard.interpret.probes import untrained_copy
from regard.metrics.representation.vectors import (
    Array,
    BagOfWords,
    cosines,
    nearest,
    retrieve,
    shared_words,
)

POOLINGS = ("summary", "mean")
NUM_BOOTSTRAP = 1_000
NUM_GROUPS = 4
"""Groups of at least three sentences in the plot, the first ones."""
NUM_SENTENCES = 4
"""Sentences of each group in the plot."""
NUM_SAMPLES = 12
MAX_SHARED = 0.25
"""Share of common words at most for paraphrases that use other words."""


@dataclass(frozen=True)
class Paraphrases:
    """German sentences, grouped by the English sentence that they translate."""

    sentences: tuple[str, ...]
    groups: tuple[str, ...]
    """The English sentence of each."""

    @cached_property
    def members(self) -> dict[str, list[int]]:
        """The sentences of each group."""
        rows: dict[str, list[int]] = {}
        for row, group in enumerate(self.groups):
            rows.setdefault(group, []).append(row)
        return rows

    @cached_property
    def queries(self) -> list[int]:
        """The first sentence of each of the first groups of several."""
        return [rows[0] for rows in self.members.values() if len(rows) > 1][:NUM_SAMPLES]

    @cached_property
    def other_words(self) -> list[int]:
        """The sentences that share few words with every other one of their group."""
        return [
            row
            for rows in self.members.values()
            for row in rows
            if len(rows) > 1
            and all(
                shared_words(self.sentences[row], self.sentences[other]) <= MAX_SHARED
                for other in rows
                if other != row
            )
        ]

    @cached_property
    def plotted(self) -> list[int]:
        """The sentences in the plot, group by group."""
        large = [rows[:NUM_SENTENCES] for rows in self.members.values() if len(rows) > 2]
        return [row for rows in large[:NUM_GROUPS] for row in rows]

    def describe(self, rows: Sequence[int]) -> list[Row]:
        """Return sentences with their groups."""
        return [{"text": self.sentences[row], "group": self.groups[row]} for row in rows]


def find_paraphrases(test: Sequence[Example]) -> Paraphrases:
    """Return each German sentence of a test set once, with its first English translation."""
    groups: dict[str, str] = {}
    for example in test:
        groups.setdefault(example.source, example.target)
    return Paraphrases(tuple(groups), tuple(groups.values()))


def score(vectors: Array, found: Paraphrases) -> Row:
    """Score the retrieval of all paraphrases, and of those with mostly other words."""
    similar = cosines(vectors, vectors)
    values = {}
    for name, queries in (("all", None), ("other_words", found.other_words)):
        results = retrieve(similar, found.groups, queries=queries, num_bootstrap=NUM_BOOTSTRAP)
        values[name] = {metric: result.to_dict() for metric, result in results.items()}
    return values


def measure_run(task: Any, found: Paraphrases) -> Row:
    """Score a trained encoder beside its untrained copy, and project the sentences of the plot."""
    untrained = untrained_copy(task)
    vectors = {kind: embed(task, found.sentences, pooling=kind) for kind in POOLINGS}
    before = embed(untrained, found.sentences, pooling="summary")
    points, share = project(vectors["summary"][found.plotted])
    return {
        "retrieval": {kind: slim(score(rows, found)) for kind, rows in vectors.items()},
        "untrained": slim(score(before, found))["all"]["accuracy"],
        "points": rounded(points.tolist(), 4),
        "variance": share,
        "nearest": _nearest(vectors["summary"], found),
    }


def measure_baseline(data: str, found: Paraphrases) -> Row:
    """Score bags of words, and describe the sentences that the page shows."""
    splits = paraphrase_splits(data)
    bag = BagOfWords([example.source for example in splits.train])(found.sentences)
    scores = score(bag, found)
    return {
        "data": splits.note,
        "retrieval": slim(scores),
        "signature": scores["all"]["accuracy"]["signature"],
        "counts": {name: scores[name]["accuracy"]["detail"] for name in scores},
        "nearest": _nearest(bag, found),
        "plotted": found.describe(found.plotted),
        "queries": found.describe(found.queries),
    }


def slim(scores: Row) -> Row:
    """Return values and intervals only."""
    return {
        name: {
            metric: {key: one[key] for key in ("value", "interval") if key in one}
            for metric, one in group.items()
        }
        for name, group in scores.items()
    }


def _nearest(vectors: Array, found: Paraphrases) -> list[Row]:
    """Return the nearest sentence of each query, and whether it is a paraphrase."""
    similar = cosines(vectors, vectors)
    similar[range(len(similar)), range(len(similar))] = -2
    rows = nearest(similar, 1)[:, 0]
    return [
        {
            "text": found.sentences[rows[query]],
            "is_right": bool(found.groups[rows[query]] == found.groups[query]),
        }
        for query in found.queries
    ]
