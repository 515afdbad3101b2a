"""Similarity of sentence vectors by meaning and by words (Sutskever et al. 2014, fig. 2)."""

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
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run

MODELS = {"sutskever2014": "sutskever2014-laptop", "bahdanau2015": "bahdanau2015-laptop"}
"""Recipes by model: a fixed context, and attention."""

SETTINGS = (
    "data.source.kind=word",
    "data.target.kind=word",
    "data.batch.max_length=30",
    "data.batch.max_tokens=400",
    "train.max_epochs=10",
    "search.beams=1",
)
"""Overrides: small batches give enough steps on few short sentences."""

NUM_TRAIN, NUM_VALID, NUM_TEST = 2_000, 50, 100
"""Numbers of training, validation and test sentences, each in four variants."""

NUM_SHOWN = 2
"""Number of test sentences in the plot."""

FIXED, ATTENDING = MODELS
MEAN = "bahdanau2015, mean of states"
BAG, UNTRAINED = "bag of words", "sutskever2014, not trained"
SAME_MEANING, SAME_WORDS, OTHER = "same meaning", "same words, other meaning", "different words"
RETRIEVAL = "retrieval accuracy %"


def sentence_vectors(seed: int, folder: Path) -> Findings:
    """Train both models and compare the vectors of test sentences.

    Args:
        seed: Seed of the models; the sentences are always the same.
        folder: Folder of the runs.
    """
    turned = sample_role_swaps(NUM_TEST + NUM_VALID + NUM_TRAIN)
    test, train = turned[:NUM_TEST], turned[NUM_TEST + NUM_VALID :]
    sides = {"train": train, "valid": turned[NUM_TEST : NUM_TEST + NUM_VALID], "test": test}
    for side, items in sides.items():
        pairs = [example for item in items for example in item.examples]
        write_examples(folder / "data" / f"{side}.jsonl", pairs)
    sentences = [sentence for item in test for sentence in item.sentences]
    tasks = {name: _train(name, seed, folder) for name in MODELS}
    vectors: dict[str, Array] = {name: embed(task, sentences) for name, task in tasks.items()}
    vectors[MEAN] = embed(tasks[ATTENDING], sentences, pooling="mean")
    shown = {name: vectors[name] for name in (*MODELS, MEAN)}
    vectors[UNTRAINED] = embed(untrained_copy(tasks[FIXED]), sentences)
    vectors[BAG] = BagOfWords([sentence for item in train for sentence in item.sentences])(
        sentences
    )
    numbers = {name: measure(array) for name, array in vectors.items()}
    return Findings(
        tables={"Cosine similarities": numbers},
        claims=_claims(numbers),
        plots={"sentence-vectors": _plot(shown, test)},
    )


def measure(vectors: Array) -> dict[str, float]:
    """Compute mean cosines and retrieval accuracy; rows: the four variants of each `RoleSwap`."""
    similar = cosines(vectors, vectors)
    numbers = np.arange(len(vectors))
    meaning, words = numbers // 2, numbers // 4
    is_like = (meaning[:, None] == meaning) & (numbers[:, None] != numbers)
    is_same = words[:, None] == words
    accuracy = retrieve(similar, meaning.tolist())["accuracy"]
    return {
        SAME_MEANING: float(similar[is_like].mean()),
        SAME_WORDS: float(similar[is_same & (meaning[:, None] != meaning)].mean()),
        OTHER: float(similar[~is_same].mean()),
        RETRIEVAL: accuracy.value,
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
    return train_run(request, seed)


def _claims(numbers: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    fixed, attending, mean, bag = (numbers[name] for name in (FIXED, ATTENDING, MEAN, BAG))
    untrained = numbers[UNTRAINED]
    return (
        Claim(
            "Fixed context: the same meaning is closer than the same words with another meaning.",
            _outcome(fixed),
            fixed[SAME_MEANING] > fixed[SAME_WORDS],
        ),
        Claim(
            "Bag of words: both are equally close.",
            _outcome(bag),
            abs(bag[SAME_MEANING] - bag[SAME_WORDS]) < 1e-6,
        ),
        Claim(
            "Untrained encoder: the same words are closer than the same meaning.",
            _outcome(untrained),
            untrained[SAME_MEANING] < untrained[SAME_WORDS],
        ),
        Claim(
            "Attention: the mean of all states represents meaning better than the last state.",
            f"retrieval {mean[RETRIEVAL]:.1f} % by the mean, {attending[RETRIEVAL]:.1f} % by the "
            "last state",
            mean[SAME_MEANING] > mean[SAME_WORDS] and mean[RETRIEVAL] > attending[RETRIEVAL],
        ),
    )


def _outcome(row: dict[str, float]) -> str:
    return f"cosine {row[SAME_MEANING]:.2f} and {row[SAME_WORDS]:.2f}"


def _plot(vectors: dict[str, Array], turned: Sequence[RoleSwap]) -> Plot:
    """Plot the first sentences of each model on their first two principal components."""
    shown = [sentence for item in turned[:NUM_SHOWN] for sentence in item.sentences]
    panels = {}
    for name, array in vectors.items():
        points, share = project(array[: len(shown)])
        panels[f"{name} · {100 * share:.0f} %"] = [(float(x), float(y)) for x, y in points]
    figure = grouped(
        panels,
        shown,
        groups=[number // 2 for number in range(len(shown))],
        marks=[number % 2 for number in range(len(shown))],
    )
    caption = (
        f"The first {NUM_SHOWN} test sentences in four variants each, projected to the first two "
        "principal components of their vectors; above each plot, the share of explained variance. "
        "Colours are meanings, markers word orders."
    )
    return Plot(figure, caption)
