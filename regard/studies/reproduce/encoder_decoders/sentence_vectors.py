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
from regard.studies.reproduce.encoder_decoders.repetition import NUM_MODELS, average, model_seeds
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
    """Train the models and compare the vectors of test sentences.

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
    fixed = [_train(FIXED, number, folder) for number in model_seeds(seed)]
    attending = _train(ATTENDING, seed, folder)
    embedders: dict[str, Sequence[Callable[[list[str]], Array]]] = {
        FIXED: [partial(embed, task) for task in fixed],
        ATTENDING: [partial(embed, attending)],
        MEAN: [partial(embed, attending, pooling="mean")],
        UNTRAINED: [partial(embed, untrained_copy(task)) for task in fixed],
        BAG: [BagOfWords(_sentences(parts.train))],
    }
    names, gifts = (
        {name: [one(_sentences(part)) for one in group] for name, group in embedders.items()}
        for part in (parts.liking, parts.giving)
    )
    by_model = [compare_verbs(vectors) for vectors in names[FIXED]]
    liking = {name: average([*map(compare_verbs, group)]) for name, group in names.items()}
    giving = {name: average([*map(compare_forms, group)]) for name, group in gifts.items()}
    return Findings(
        tables={
            "Cosines of gifts: I gave her a card in the garden": giving,
            "Cosines of pairs: Mary admires John": liking,
        },
        claims=_claims(by_model, giving),
        plots=_plots(
            {name: (names[name][0], gifts[name][0]) for name in embedders},
            parts.liking,
            parts.giving,
        ),
    )


def compare_forms(vectors: Array) -> dict[str, float]:
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


def compare_verbs(vectors: Array) -> dict[str, float]:
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


def _claims(
    liking: Sequence[dict[str, float]], giving: dict[str, dict[str, float]]
) -> tuple[Claim, ...]:
    fixed, attending, untrained, bag = (giving[name] for name in (FIXED, ATTENDING, UNTRAINED, BAG))
    cosines_of_pairs = "; ".join(
        f"{one[SAME_ROLES]:.2f} and {one[SAME_VERB]:.2f}" for one in liking
    )
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
            f"Fixed context: verbs of similar meaning are closer than reversed roles, with each of "
            f"{NUM_MODELS} seeds.",
            f"mean cosines with another verb and with reversed roles, by seed: {cosines_of_pairs}",
            all(one[SAME_ROLES] > one[SAME_VERB] for one in liking),
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
