"""Sentences as points (Sutskever et al. 2014, fig. 2): does like meaning lie close together?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.datasets.synthetic.phrasebook.meanings import RoleSwap, sample_role_swaps
from regard.data.text.readers import write_examples
from regard.interpret.embed import embed, project
from regard.interpret.probes import untrained_copy
from regard.metrics.representation.vectors import Array, BagOfWords, cosines, retrieve
from regard.plots.scatter import grouped
from regard.runs.request import Request
from regard.studies.reproduce.findings import Findings, Plot, Relation, about, train_once

MODELS = {"sutskever2014": "sutskever2014-laptop", "bahdanau2015": "bahdanau2015-laptop"}
"""Recipes by the name of the rung: a fixed context, and attention."""

SETTINGS = (
    "data.batch.max_length=30",
    "data.batch.max_tokens=400",
    "train.max_epochs=10",
    "search.beams=1",
)
"""Small batches make many steps of few short sentences."""

NUM_LEARNED, NUM_WATCHED, NUM_MEASURED = 2_000, 50, 100
"""What is trained on, validated on and measured: sentences in four ways each."""

NUM_SHOWN = 2
"""Of those measured, the first that are drawn."""

FIXED, ATTENDING = MODELS
MEAN = "bahdanau2015, mean of states"
BAG, UNLEARNED = "bag of words", "sutskever2014, not trained"
LIKE, SAME_WORDS, OTHER = "like meaning", "same words, other meaning", "other words"
FOUND = "like found %"


def sentence_vectors(seed: int, folder: Path) -> Findings:
    """Train both models and see where their sentences lie.

    Args:
        seed: What the models start from; the sentences are always the same.
        folder: Where their runs go; those that it already holds for this seed are taken.
    """
    drawn = sample_role_swaps(NUM_MEASURED + NUM_WATCHED + NUM_LEARNED)
    measured, learned = drawn[:NUM_MEASURED], drawn[NUM_MEASURED + NUM_WATCHED :]
    sides = {
        "train": learned,
        "valid": drawn[NUM_MEASURED : NUM_MEASURED + NUM_WATCHED],
        "test": measured,
    }
    for side, own in sides.items():
        pairs = [example for one in own for example in one.examples]
        write_examples(folder / "data" / f"{side}.jsonl", pairs)
    sentences = [sentence for one in measured for sentence in one.sentences]
    tasks = {name: _train(name, seed, folder) for name in MODELS}
    vectors: dict[str, Array] = {name: embed(task, sentences) for name, task in tasks.items()}
    vectors[MEAN] = embed(tasks[ATTENDING], sentences, pooling="mean")
    shown = {name: vectors[name] for name in (*MODELS, MEAN)}
    vectors[UNLEARNED] = embed(untrained_copy(tasks[FIXED]), sentences)
    known = [sentence for one in learned for sentence in one.sentences]
    vectors[BAG] = BagOfWords(known)(sentences)
    numbers = {name: measure(own) for name, own in vectors.items()}
    return Findings(
        title="Sentences as points",
        about=about("sentence-vectors").format(
            num_measured=NUM_MEASURED, num_sentences=4 * NUM_MEASURED
        ),
        numbers=numbers,
        relations=_relations(numbers),
        plots={"sentence-vectors": _plot(shown, measured)},
    )


def measure(vectors: Array) -> dict[str, float]:
    """Measure vectors of sentences, the four of each `RoleSwap` one after the other."""
    similar = cosines(vectors, vectors)
    numbers = np.arange(len(vectors))
    meaning, words = numbers // 2, numbers // 4
    is_like = (meaning[:, None] == meaning) & (numbers[:, None] != numbers)
    is_same = words[:, None] == words
    found = retrieve(similar, meaning.tolist())["accuracy"]
    return {
        LIKE: float(similar[is_like].mean()),
        SAME_WORDS: float(similar[is_same & (meaning[:, None] != meaning)].mean()),
        OTHER: float(similar[~is_same].mean()),
        FOUND: found.value,
    }


def _train(name: str, seed: int, folder: Path) -> Any:
    sides = [(str(folder / "data" / f"{side}.jsonl"),) for side in ("train", "valid", "test")]
    request = Request(
        data=sides[0],
        valid=sides[1],
        test=sides[2],
        recipe=MODELS[name],
        settings=SETTINGS,
        out=folder / name,
    )
    return train_once(request, seed)


def _relations(numbers: dict[str, dict[str, float]]) -> tuple[Relation, ...]:
    fixed, attending, mean, bag = (numbers[name] for name in (FIXED, ATTENDING, MEAN, BAG))
    return (
        Relation(
            "With a fixed context, like meaning is closer than the same words otherwise.",
            fixed[LIKE] > fixed[SAME_WORDS],
        ),
        Relation("Bags of words are the same for both.", abs(bag[LIKE] - bag[SAME_WORDS]) < 1e-6),
        Relation(
            "It is learned: the fresh encoder has the same words closer.",
            numbers[UNLEARNED][LIKE] < numbers[UNLEARNED][SAME_WORDS],
        ),
        Relation(
            "With attention, the states hold the meaning, and not the last one alone.",
            mean[LIKE] > mean[SAME_WORDS] and mean[FOUND] > attending[FOUND],
        ),
    )


def _plot(vectors: dict[str, Array], turned: Sequence[RoleSwap]) -> Plot:
    """Plot the first sentences of each model on their first two principal components."""
    shown = [sentence for one in turned[:NUM_SHOWN] for sentence in one.sentences]
    panels = {}
    for name, own in vectors.items():
        points, share = project(own[: len(shown)])
        panels[f"{name} · {100 * share:.0f} %"] = [(float(x), float(y)) for x, y in points]
    drawn = grouped(
        panels,
        shown,
        groups=[number // 2 for number in range(len(shown))],
        marks=[number % 2 for number in range(len(shown))],
    )
    caption = (
        f"The first {NUM_SHOWN} of the sentences, each in four ways, on the first two principal "
        "components of their vectors; above each plane, the share of the variance that it tells. A "
        "colour is a meaning, a mark an order of words."
    )
    return Plot(drawn, caption)
