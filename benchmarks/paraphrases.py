"""Retrieval of paraphrases by the sentence vectors of translation models.

German translations of one English sentence are paraphrases of each other.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from gather import Extractor, Finished, Together
from prepare import paraphrase_splits
from results import Row, rounded

from regard.data.example import Example
from regard.data.splits import Splits
from regard.interpret.embed import embed, project
from regard.interpret.probes import untrained_copy
from regard.metrics.representation.vectors import Array, BagOfWords, cosines, retrieve, shared_words

NUM_BOOTSTRAP = 1_000
NUM_GROUPS, NUM_SENTENCES = 4, 4
"""Groups of at least three sentences in the plot, the first ones, and sentences of each."""
NUM_SAMPLES = 12
MAX_SHARED = 0.25
"""Share of common words at most for paraphrases that use other words."""


class Paraphrases:
    """German sentences of a test set, grouped by the English sentence that they translate."""

    def __init__(self, test: Sequence[Example]) -> None:
        groups: dict[str, str] = {}
        for example in test:  # each sentence once, with its first translation
            groups.setdefault(example.source, example.target)
        self.sentences, self.groups = list(groups), list(groups.values())
        self.members: dict[str, list[int]] = {}
        for row, group in enumerate(self.groups):
            self.members.setdefault(group, []).append(row)
        several = [rows for rows in self.members.values() if len(rows) > 1]
        self.queries = [rows[0] for rows in several][:NUM_SAMPLES]
        large = [rows[:NUM_SENTENCES] for rows in several if len(rows) > 2]
        self.plotted = [row for rows in large[:NUM_GROUPS] for row in rows]
        self.other_words = [row for rows in several for row in rows if self._is_unlike(row, rows)]

    def _is_unlike(self, row: int, rows: Sequence[int]) -> bool:
        """Return whether a sentence shares few words with every other one of its group."""
        others = [self.sentences[other] for other in rows if other != row]
        return all(shared_words(self.sentences[row], other) <= MAX_SHARED for other in others)

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


@cache
def _read(data: str) -> tuple[Paraphrases, Splits]:
    splits = paraphrase_splits(data)
    return Paraphrases(splits.test), splits


def slim(scores: Row) -> Row:
    """Return values and intervals only."""
    if "value" in scores:
        return {key: scores[key] for key in ("value", "interval") if key in scores}
    return {name: slim(one) for name, one in scores.items()}


def paraphrase_retrieval(run: Finished, data: str) -> Row:
    """Score a trained encoder beside its untrained copy, and project the sentences of the plot."""
    found, _ = _read(data)
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
    found, splits = _read(data)
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
