"""Retrieval of paraphrases by the sentence vectors of translation models.

German translations of one English sentence are paraphrases of each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from gather import Extractor, Finished, Together
from prepare import paraphrase_splits
from results import Row, rounded

from regard.data.example import Example
from regard.interpret.embed import embed, project
from regard.interpret.probes import untrained_copy
from regard.metrics.representation.vectors import Array, BagOfWords, cosines, retrieve, shared_words

NUM_BOOTSTRAP = 1_000
NUM_GROUPS, NUM_SENTENCES = 4, 4
"""Groups of at least three sentences in the plot, the first ones, and sentences of each."""
NUM_SAMPLES = 12
MAX_SHARED = 0.25
"""Share of common words at most for paraphrases that use other words."""


@dataclass(frozen=True)
class Paraphrases:
    """German sentences, grouped by the English sentence that they translate."""

    sentences: list[str]
    groups: list[str]
    """The English sentence of each."""

    @cached_property
    def members(self) -> dict[str, list[int]]:
        """The sentences of each group."""
        rows: dict[str, list[int]] = {}
        for row, group in enumerate(self.groups):
            rows.setdefault(group, []).append(row)
        return rows

    @property
    def queries(self) -> list[int]:
        """The first sentence of each of the first groups of several."""
        return [rows[0] for rows in self.members.values() if len(rows) > 1][:NUM_SAMPLES]

    @property
    def plotted(self) -> list[int]:
        """The sentences in the plot, group by group."""
        large = [rows[:NUM_SENTENCES] for rows in self.members.values() if len(rows) > 2]
        return [row for rows in large[:NUM_GROUPS] for row in rows]

    @cached_property
    def other_words(self) -> list[int]:
        """The sentences that share few words with every other one of their group."""
        return [
            row
            for rows in self.members.values()
            for row in rows
            if len(rows) > 1 and all(self._share(row, other) <= MAX_SHARED for other in rows)
        ]

    def _share(self, row: int, other: int) -> float:
        return 0 if row == other else shared_words(self.sentences[row], self.sentences[other])

    def describe(self, rows: Sequence[int]) -> list[Row]:
        """Return sentences with their groups."""
        return [{"text": self.sentences[row], "group": self.groups[row]} for row in rows]

    def nearest(self, vectors: Array) -> list[Row]:
        """Return the nearest sentence of each query, and whether it is a paraphrase."""
        similar = cosines(vectors[self.queries], vectors)
        similar[range(len(similar)), self.queries] = -2
        pairs = zip(self.queries, similar.argmax(1), strict=True)
        return [
            {"text": self.sentences[row], "is_right": self.groups[row] == self.groups[query]}
            for query, row in pairs
        ]

    def score(self, vectors: Array) -> Row:
        """Score the retrieval of all paraphrases, and of those with mostly other words."""
        similar = cosines(vectors, vectors)
        scores: Row = {}
        for name, queries in (("all", None), ("other_words", self.other_words)):
            found = retrieve(similar, self.groups, queries=queries, num_bootstrap=NUM_BOOTSTRAP)
            scores[name] = {metric: result.to_dict() for metric, result in found.items()}
        return scores


def find_paraphrases(test: Sequence[Example]) -> Paraphrases:
    """Return each German sentence of a test set once, with its first English translation."""
    groups: dict[str, str] = {}
    for example in test:
        groups.setdefault(example.source, example.target)
    return Paraphrases(list(groups), list(groups.values()))


@cache
def _read(data: str) -> Paraphrases:
    return find_paraphrases(paraphrase_splits(data).test)


def slim(scores: Row) -> Row:
    """Return values and intervals only."""
    if "value" in scores:
        return {key: scores[key] for key in ("value", "interval") if key in scores}
    return {name: slim(one) for name, one in scores.items()}


def paraphrase_retrieval(run: Finished, data: str) -> Row:
    """Score a trained encoder beside its untrained copy, and project the sentences of the plot."""
    found = _read(data)
    vectors = {kind: embed(run.task, found.sentences, pooling=kind) for kind in ("summary", "mean")}
    before = embed(untrained_copy(run.task), found.sentences, pooling="summary")
    points, share = project(vectors["summary"][found.plotted])
    return {
        "retrieval": {kind: slim(found.score(rows)) for kind, rows in vectors.items()},
        "untrained": slim(found.score(before)["all"]["accuracy"]),
        "points": rounded(np.asarray(points).tolist(), 4),
        "variance": share,
        "nearest": found.nearest(vectors["summary"]),
    }


def paraphrase_baseline(_context: Together, data: str) -> Row:
    """Score bags of words, and describe the sentences that the page shows."""
    found, splits = _read(data), paraphrase_splits(data)
    bag = BagOfWords([example.source for example in splits.train])(found.sentences)
    scores = found.score(bag)
    return {
        "data": splits.note,
        "retrieval": slim(scores),
        "signature": scores["all"]["accuracy"]["signature"],
        "counts": {name: scores[name]["accuracy"]["detail"] for name in scores},
        "nearest": found.nearest(bag),
        "plotted": found.describe(found.plotted),
        "queries": found.describe(found.queries),
    }


EVERY_SEED: tuple[Extractor, ...] = (paraphrase_retrieval,)
JOINED: tuple[Extractor, ...] = (paraphrase_baseline,)
