"""Train autoencoders of sentences with codes of several widths, and gather a JSON file.

    python benchmarks/autoencoders.py sentences --jobs 9

The data, Tatoeba, is in the folder `tatoeba` of `$REGARD_DATA`, or downloaded. The page is drawn
from the JSON file by `benchmarks/pages.py`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import conduct
from side_by_side import Run

from regard.core.errors import ConfigError
from regard.core.files import read_json
from regard.data.example import Example
from regard.runs import folder as runs
from regard.tasks.latents import interpolate, sample_latents

PLAIN = ("dai2015-autoencoder", "hill2016")
VARIATIONAL = "bowman2016"
WIDTHS = (16, 64, 256)
FREE_NATS = 8
"""What a whole code may differ from the prior for nothing, however wide it is."""

NUM_SAMPLES = 20
NUM_WALKS = 4
NUM_STEPS = 7
SEED = 0
"""What is made up hangs on it."""


def _sentences(_folder: Path) -> list[Run]:
    """Plan each model with codes of each width."""
    found = []
    for width in WIDTHS:
        words = (f"model.encoder.bottleneck.dim={width}",)
        found += [Run(f"{recipe} {width}", recipe, ("tatoeba",), words) for recipe in PLAIN]
        free = f"model.encoder.bottleneck.free_bits={FREE_NATS / width:g}"
        found.append(Run(f"{VARIATIONAL} {width}", VARIATIONAL, ("tatoeba",), (*words, free)))
    return found


EXPERIMENTS = {"sentences": _sentences}


def main() -> None:
    """Train the runs of some experiments and gather what they measured."""
    asked = conduct.arguments(argparse.ArgumentParser(description=__doc__), EXPERIMENTS)
    conduct.experiments(EXPERIMENTS, asked, gather=_gather)


def _gather(run: Run, place: Path) -> dict[str, Any]:
    task = runs.load(place)
    test: list[Example] = task.read_split(
        (str(place / runs.TEST),), "test", config=task.recipe.data
    )
    answers = read_json(place / runs.PREDICTIONS)
    return {
        **conduct.describe(run, place),
        "width": task.recipe.model.encoder.bottleneck.dim,
        "samples": [
            (example.source, example.target, answer)
            for example, answer in zip(test[:NUM_SAMPLES], answers, strict=False)
        ],
        "walks": _walks(task, [example.source for example in test]),
        "made_up": _make_up(task),
    }


def _walks(task: Any, sentences: Sequence[str]) -> list[list[str]]:
    """Return what lies between the first test sentence and the second, and between the next."""
    codes = task.encode(sentences[: 2 * NUM_WALKS])
    return [
        [first, *task.decode(interpolate(codes[row], codes[row + 1], NUM_STEPS)), last]
        for row, (first, last) in zip(
            range(0, len(codes), 2),
            zip(sentences[::2], sentences[1::2], strict=False),
            strict=False,
        )
    ]


def _make_up(task: Any) -> list[str]:
    """Return what drawn codes stand for, where codes can be drawn."""
    try:
        codes = sample_latents(task, NUM_SAMPLES, seed=SEED)
    except ConfigError:
        return []
    found: list[str] = task.decode(codes)
    return found


if __name__ == "__main__":
    main()
