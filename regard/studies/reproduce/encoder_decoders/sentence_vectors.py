"""Similarity of sentence vectors by meaning and by words (Sutskever et al. 2014, fig. 2)."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.text.readers import write_examples
from regard.interpret.embed import embed, project
from regard.interpret.probes import untrained_copy
from regard.metrics.representation.vectors import Array, BagOfWords, cosines, retrieve
from regard.plots.scatter import grouped
from regard.runs.request import Request
from regard.studies.reproduce.encoder_decoders.role_sentences import LIKING, Roles, split_sentences
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run

MODELS = {"sutskever2014": "sutskever2014-laptop", "bahdanau2015": "bahdanau2015-laptop"}
"""Recipes by model: a fixed context, and attention."""

SETTINGS = (
    "data.source.kind=word",
    "data.target.kind=word",
    "data.batch.max_length=20",
    "data.batch.max_tokens=400",
    "model.encoder.embedding_dim=64",
    "model.encoder.dim=128",
    "model.decoder.embedding_dim=64",
    "model.decoder.dim=128",
    "model.init.forget_bias=0",
    "train.max_epochs=6",
    "search.beams=1",
)
"""Overrides: few words need a small model, and small batches give enough updates."""

NUM_PAIRS, NUM_GIFTS, NUM_VALID = 12, 60, 20
"""Pairs of names and gifts of the test part, and gifts of the validation part."""

FIXED, ATTENDING = MODELS
MEAN = "bahdanau2015, mean of states"
BAG, UNTRAINED = "bag of words", "sutskever2014, not trained"

SAME_MEANING, REVERSED, OTHER = "same meaning", "roles reversed", "different words"
PASSIVE, REVERSED_PASSIVE = "active and passive", "active and reversed passive"
RETRIEVAL = "retrieval accuracy %"
SAME_ROLES, SAME_VERB = "same roles, other verb", "same verb, roles reversed"

NUM_FORMS = 3
"""Forms of one gift: active, location first, passive."""


def sentence_vectors(seed: int, folder: Path) -> Findings:
    """Train both models and compare the vectors of test sentences.

    Args:
        seed: Seed of the models; the sentences are always the same.
        folder: Folder of the runs.
    """
    parts = split_sentences(num_pairs=NUM_PAIRS, num_gifts=NUM_GIFTS, num_valid=NUM_VALID)
    tested = [*parts.liking, *parts.giving]
    sides = {"train": parts.train, "valid": parts.valid, "test": tested}
    for side, items in sides.items():
        examples = [example for item in items for example in item.examples]
        write_examples(folder / "data" / f"{side}.jsonl", examples)
    tasks = {name: _train(name, seed, folder) for name in MODELS}
    untrained = untrained_copy(tasks[FIXED])
    bag = BagOfWords(_sentences(parts.train))
    embedders: dict[str, Callable[[list[str]], Array]] = {
        FIXED: partial(embed, tasks[FIXED]),
        ATTENDING: partial(embed, tasks[ATTENDING]),
        MEAN: partial(embed, tasks[ATTENDING], pooling="mean"),
        UNTRAINED: partial(embed, untrained),
        BAG: bag,
    }
    vectors = {
        name: (embedder(_sentences(parts.liking)), embedder(_sentences(parts.giving)))
        for name, embedder in embedders.items()
    }
    liking = {name: compare_verbs(names) for name, (names, _) in vectors.items()}
    giving = {name: compare_forms(gifts) for name, (_, gifts) in vectors.items()}
    return Findings(
        tables={
            "Cosines of gifts: I gave her a card in the garden": giving,
            "Cosines of pairs: Mary admires John": liking,
        },
        claims=_claims(liking, giving),
        plots=_plots(vectors, parts.liking, parts.giving),
    )


def compare_forms(vectors: Array) -> dict[str, float | str]:
    """Compute mean cosines and retrieval accuracy of gifts; rows: the six sentences of each."""
    similar = cosines(vectors, vectors)
    rows = np.arange(len(vectors))
    meaning, words, form = rows // NUM_FORMS, rows // (2 * NUM_FORMS), rows % NUM_FORMS
    has_same_words = words[:, None] == words
    is_like = (meaning[:, None] == meaning) & (rows[:, None] != rows)
    is_reversed = has_same_words & (meaning[:, None] != meaning)
    is_active_to_passive = (form[:, None] == 0) & (form == NUM_FORMS - 1)
    return {
        SAME_MEANING: float(similar[is_like].mean()),
        REVERSED: float(similar[is_reversed].mean()),
        PASSIVE: float(similar[is_like & is_active_to_passive].mean()),
        REVERSED_PASSIVE: float(similar[is_reversed & is_active_to_passive].mean()),
        OTHER: float(similar[~has_same_words].mean()),
        RETRIEVAL: retrieve(similar, meaning.tolist())["accuracy"].value,
    }


def compare_verbs(vectors: Array) -> dict[str, float | str]:
    """Compute mean cosines of pairs of names; rows: both roles of each verb, pair by pair."""
    similar = cosines(vectors, vectors)
    rows = np.arange(len(vectors))
    pair, verb, role = rows // (2 * len(LIKING)), rows // 2, rows % 2
    is_same_pair = pair[:, None] == pair
    is_same_role, is_same_verb = role[:, None] == role, verb[:, None] == verb
    return {
        SAME_ROLES: float(similar[is_same_pair & is_same_role & ~is_same_verb].mean()),
        SAME_VERB: float(similar[is_same_pair & ~is_same_role & is_same_verb].mean()),
        OTHER: float(similar[~is_same_pair].mean()),
    }


def _sentences(items: Sequence[Roles]) -> list[str]:
    return [sentence for item in items for sentence in item.sentences]


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


def _claims(liking: dict[str, Any], giving: dict[str, Any]) -> tuple[Claim, ...]:
    fixed, attending, untrained, bag = (giving[name] for name in (FIXED, ATTENDING, UNTRAINED, BAG))
    names = liking[FIXED]
    return (
        Claim(
            "Fixed context: three forms of one meaning are closer than reversed roles.",
            _outcome(fixed),
            fixed[SAME_MEANING] > fixed[REVERSED],
        ),
        Claim(
            "Fixed context: an active sentence is closer to the passive of its meaning than to the "
            "passive with reversed roles; for a bag of words it is the other way round.",
            f"mean cosine {fixed[PASSIVE]:.2f} and {fixed[REVERSED_PASSIVE]:.2f}; bag of words "
            f"{bag[PASSIVE]:.2f} and {bag[REVERSED_PASSIVE]:.2f}",
            fixed[PASSIVE] > fixed[REVERSED_PASSIVE] and bag[PASSIVE] < bag[REVERSED_PASSIVE],
        ),
        Claim(
            "Fixed context: verbs of similar meaning are closer than reversed roles.",
            f"mean cosine {names[SAME_ROLES]:.2f} with another verb, {names[SAME_VERB]:.2f} with "
            "reversed roles",
            names[SAME_ROLES] > names[SAME_VERB],
        ),
        Claim(
            "Training brings it about: before training, reversed roles are closer.",
            _outcome(untrained),
            untrained[SAME_MEANING] < untrained[REVERSED],
        ),
        Claim(
            "Attention: the last state need not represent the meaning, and reversed roles are as "
            "close.",
            _outcome(attending),
            attending[SAME_MEANING] <= attending[REVERSED],
        ),
    )


def _outcome(row: dict[str, float]) -> str:
    return (
        f"mean cosine {row[SAME_MEANING]:.2f} with the same meaning, {row[REVERSED]:.2f} with "
        "reversed roles"
    )


def _plots(
    vectors: dict[str, tuple[Array, Array]], liking: Sequence[Roles], giving: Sequence[Roles]
) -> dict[str, Plot]:
    """Plot the sentences of the figure on the first two principal components of their vectors."""
    gifts, names = _sentences(giving[:1]), _sentences(liking[: len(LIKING)])
    shown = (FIXED, UNTRAINED, BAG)
    caption = (
        "projected to the first two principal components of their vectors; above each plot, the "
        "share of the variance that they explain. Colours are meanings, markers"
    )
    return {
        "sentence-vectors": Plot(
            grouped(
                _panels({name: vectors[name][1][: len(gifts)] for name in shown}),
                gifts,
                groups=[row // NUM_FORMS for row in range(len(gifts))],
                marks=[row % NUM_FORMS for row in range(len(gifts))],
            ),
            f"A gift in three forms, and with reversed roles, {caption} the form of the sentence.",
        ),
        "sentence-vectors-pairs": Plot(
            grouped(
                _panels({name: vectors[name][0][: len(names)] for name in shown}),
                names,
                groups=[row % 2 for row in range(len(names))],
                marks=[row // 2 for row in range(len(names))],
            ),
            f"Three verbs with both roles, {caption} verbs.",
        ),
    }


def _panels(vectors: dict[str, Array]) -> dict[str, list[tuple[float, float]]]:
    panels = {}
    for name, array in vectors.items():
        points, share = project(array)
        panels[f"{name} · {100 * share:.0f} %"] = [(float(x), float(y)) for x, y in points]
    return panels
