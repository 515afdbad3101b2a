"""Train models of spelling, sound and script, and gather JSON files.

    python benchmarks/spelling.py pronunciation transliteration japanese --jobs 16

The pages are drawn from the JSON files by `benchmarks/pages.py`.
"""

import argparse
from pathlib import Path
from typing import Any

import conduct
from side_by_side import Run

from regard.core.files import read_json
from regard.data.example import Example
from regard.runs import folder as runs

SEEDS = (1, 2, 3, 4, 5)

ENGLISH = {"toshniwal2016": SEEDS, "wu2021": SEEDS[:4], "raffel2017": SEEDS[:2]}
"""The recipes that learn to pronounce English, with their seeds."""

SHOWN = {
    "english": ("knowledge", "beautiful", "pneumonia", "thorough", "xylophone"),
    "cmudict": ("knowledge", "beautiful", "pneumonia", "thorough", "xylophone"),
    "german": ("Schmetterling", "Quelle", "Xylophon", "Psychologie", "Strauß"),
    "transliteration": ("محمد", "فاطمة", "عبدالله", "شكسبير", "كليوباترا"),
    "japanese": (
        "i like tea .",
        "he is a teacher .",
        "where is the station ?",
        "she went to tokyo yesterday .",
        "i don 't know what to say .",
    ),
}
"""Words and sentences whose attention is drawn."""


def _pronunciation(_folder: Path) -> list[Run]:
    found = []
    for recipe, seeds in ENGLISH.items():
        found += [Run(f"english {recipe}", recipe, ("g2p",), (), seed) for seed in seeds]
    soft = ("model.decoder.span=global",)
    found.append(Run("english raffel2017 soft", "raffel2017", ("g2p",), soft))
    for recipe in ("toshniwal2016", "wu2021"):
        found.append(Run(f"german {recipe}", recipe, ("g2p:deu",)))
    return found


def _cmudict(_folder: Path) -> list[Run]:
    """Plan runs on a dictionary four times as large."""
    words = {
        "toshniwal2016": ("train.max_epochs=16",),
        "wu2021": (
            "train.max_steps=4000",
            "data.batch.max_tokens=8000",
            "model.encoder.dropout=0.1",
            "model.decoder.dropout=0.1",
        ),
    }
    return [
        Run(f"cmudict {recipe}", recipe, ("cmudict",), words[recipe], seed)
        for seed in SEEDS[:2]
        for recipe in words
    ]


def _transliteration(_folder: Path) -> list[Run]:
    wide = ("data.target.kind=char", 'metrics=["accuracy", "cer", "accuracy@5"]')
    wide = (*wide, "validation.metric=accuracy", "train.max_steps=2500")
    data = ("transliteration",)
    found = []
    for seed in SEEDS[:3]:
        found.append(Run("transliteration", "transliteration", data, (), seed))
        found.append(Run("wu2021", "wu2021", data, wide, seed))
    return found


def _japanese(_folder: Path) -> list[Run]:
    data = ("small_enja",)
    return [
        Run("characters", "small-enja", data),
        Run("pieces", "small-enja", data, ("data.target.kind=unigram",)),
    ]


EXPERIMENTS = {
    "pronunciation": _pronunciation,
    "cmudict": _cmudict,
    "transliteration": _transliteration,
    "japanese": _japanese,
}


def _english(recipe: str) -> list[str]:
    return [f"english-{recipe}-seed{seed}" for seed in ENGLISH[recipe]]


TOGETHER = {
    "pronunciation": {
        "english, 5 toshniwal2016": _english("toshniwal2016"),
        "english, 4 wu2021": _english("wu2021"),
        "english, both, 9 in all": [*_english("toshniwal2016"), *_english("wu2021")],
        "german, both": ["german-toshniwal2016-seed1", "german-wu2021-seed1"],
    },
    "cmudict": {
        "cmudict, all 4": [
            f"cmudict-{name}-seed{seed}" for name in ("toshniwal2016", "wu2021") for seed in (1, 2)
        ],
    },
    "transliteration": {
        "all 6": [
            f"{name}-seed{seed}" for name in ("transliteration", "wu2021") for seed in SEEDS[:3]
        ],
    },
}
"""Runs that answer together, by the experiment and a name."""


def main() -> None:
    """Train the runs of some experiments and gather what they measured."""
    asked = conduct.arguments(argparse.ArgumentParser(description=__doc__), EXPERIMENTS)
    conduct.experiments(EXPERIMENTS, asked, gather=_gather, join=_join)


def _gather(run: Run, place: Path) -> dict[str, Any]:
    is_first = run.seed == SEEDS[0]
    return {
        **conduct.describe(run, place),
        "samples": _samples(place) if is_first else [],
        "maps": _maps(run, place) if is_first else [],
    }


def _samples(place: Path) -> list[tuple[str, str, str]]:
    answers = read_json(place / runs.PREDICTIONS)
    task = runs.load(place, "cpu")
    examples = task.read_split((str(place / runs.TEST),), "test", config=task.recipe.data)
    rows = zip(examples, answers, strict=True)
    return [(example.source, example.target, answer) for example, answer in rows][:20]


def _maps(run: Run, place: Path) -> list[dict[str, Any]]:
    """Return where the model looks while it writes its own answers."""
    task = runs.load(place, "cpu")
    words = SHOWN.get(run.name.split()[0]) or SHOWN[place.parent.name]
    answers = task.translate(words)
    examples = [Example(word, answer) for word, answer in zip(words, answers, strict=True)]
    return [
        {
            "source": example.source,
            "target": example.target,
            "rows": found.labels[0],
            "columns": found.labels[1],
            "weights": [[round(weight, 3) for weight in row] for row in found.mean().tolist()],
        }
        for example, found in zip(examples, task.attend(examples), strict=True)
    ]


def _join(name: str, folder: Path) -> list[dict[str, Any]]:
    """Measure ensembles, where all their members are finished."""
    rows = []
    for title, members in TOGETHER.get(name, {}).items():
        places = [folder / member for member in members]
        if not all((place / runs.METRICS).exists() for place in places):
            continue
        task = runs.load(",".join(map(str, places)))
        test = task.read_split((str(places[0] / runs.TEST),), "test", config=task.recipe.data)
        evaluation = task.evaluate(test, num_bootstrap=1000)
        rows.append(
            {
                "name": title,
                "members": members,
                "parameters": task.num_parameters,
                "test": evaluation.to_dict(),
            }
        )
    return rows


if __name__ == "__main__":
    main()
