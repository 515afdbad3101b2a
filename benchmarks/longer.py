"""Train models of summaries, conversations and questions on stories, and gather JSON files.

    python benchmarks/longer.py summaries dialogue questions --jobs 16

Conversations need the package `chitchat-dataset`, the others a folder in `$REGARD_DATA`. The pages
are drawn from the JSON files by `benchmarks/pages.py`.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Any

import conduct
from sentences import first_sentence
from side_by_side import Run

from regard.core.files import read_json
from regard.data.example import Example
from regard.data.text.field import as_text
from regard.metrics.table import METRICS
from regard.runs import folder as runs
from regard.runs import reranking
from regard.tasks.metrics import measure

POINTERS = ("pointer-small", "see2017")
"""The recipes that copy, and are tried without it, too."""

SEEDS = (1, 2)
NUM_SAMPLES = 20
NUM_MAPS = 3
SHORT = 40
"""Words of a source whose map can be read."""

SHOWN_LETTERS = 300
"""Letters of a long source that a sample shows."""

NUM_REPLIES = 500
"""Test contexts that are replied to in every way."""

NUM_BOOTSTRAP = 200
"""Samples behind an interval, as training takes."""

SHOWN_TASKS = (1, 2, 5, 15, 16)
"""The tasks of bAbI whose first question is drawn."""

SYNOPSIS = ("train.max_steps=3000", "train.max_epochs=0", "train.validate_every=500")

ABSTRACTS = (
    "data.batch.max_length=700",
    "data.batch.max_tokens=12000",
    "train.max_steps=600",
    "train.max_epochs=0",
    "train.validate_every=100",
    "train.schedule.warmup_steps=60",
)
"""Abstracts are four times as long as descriptions, and few."""

FINE_TUNED = ("train.optimizer.learning_rate=0.0003",)


def _summaries(_folder: Path) -> list[Run]:
    """Plan summaries with and without copying, of abstracts from nothing and from a start."""
    found = []
    for recipe in POINTERS:
        alone = (*SYNOPSIS, "model.copying.kind=none")
        found += [Run(f"synopsis {recipe}", recipe, ("synopsis",), SYNOPSIS, s) for s in SEEDS]
        found.append(Run(f"synopsis {recipe}, no copying", recipe, ("synopsis",), alone))
        found.append(Run(f"scitldr {recipe}", recipe, ("scitldr",), ABSTRACTS))
    for recipe in POINTERS:
        before = f"synopsis-{recipe}-seed1"
        words = (f"init_from={{folder}}/{before}", *ABSTRACTS, *FINE_TUNED)
        name = f"scitldr {recipe}, begun with synopsis"
        found.append(Run(name, recipe, ("scitldr",), words, needs=(before,)))
    return found


def _dialogue(_folder: Path) -> list[Run]:
    return [
        Run("replies", "vinyals2015", ("chitchat",)),
        Run("reversed", "vinyals2015", ("chitchat:reversed",)),
    ]


def _questions(_folder: Path) -> list[Run]:
    # No longer than the others take beside it, however long the stories are.
    words = ("train.max_minutes=6",)
    return [Run("babi", "babi", ("babi",), words, seed) for seed in SEEDS]


EXPERIMENTS = {"summaries": _summaries, "dialogue": _dialogue, "questions": _questions}


def main() -> None:
    """Train the runs of some experiments and gather what they measured."""
    asked = conduct.arguments(argparse.ArgumentParser(description=__doc__), EXPERIMENTS)
    conduct.experiments(EXPERIMENTS, asked, gather=_gather, join=_join)


def _gather(run: Run, place: Path) -> dict[str, Any]:
    described = conduct.describe(run, place)
    if run.seed != SEEDS[0]:
        return {**described, "samples": [], "maps": []}
    task = runs.load(place)
    test = _read_test(task, place)
    chosen = CHOSEN[place.parent.name]
    samples, drawn = chosen(test)
    answers = read_json(place / runs.PREDICTIONS)
    return {
        **described,
        "samples": [_sample(test[row], answers[row]) for row in samples],
        "maps": _maps(task, [Example(test[row].source, answers[row]) for row in drawn]),
    }


def _choose_first(test: Sequence[Example]) -> tuple[list[int], list[int]]:
    """Return which are shown, the first; and which are drawn, the first that are short."""
    rows = range(len(test))
    short = [row for row in rows if len(as_text(test[row].source).split()) <= SHORT]
    return [*rows[:NUM_SAMPLES]], short[:NUM_MAPS]


def _choose_by_task(test: Sequence[Example]) -> tuple[list[int], list[int]]:
    """Return the first question of every task, and of some tasks."""
    first: dict[str, int] = {}
    for row, example in enumerate(test):
        first.setdefault(example.tags[0], row)
    drawn = [row for tag, row in first.items() if int(tag.split()[0]) in SHOWN_TASKS]
    return [*first.values()], drawn


Choice = Callable[[Sequence[Example]], tuple[list[int], list[int]]]

CHOSEN: dict[str, Choice] = {
    "summaries": _choose_first,
    "dialogue": _choose_first,
    "questions": _choose_by_task,
}
"""Which test examples are shown with their answers, and which with a map; no one picks by hand."""


def _read_test(task: Any, place: Path) -> list[Example]:
    found: list[Example] = task.read_split(
        (str(place / runs.TEST),), "test", config=task.recipe.data
    )
    return found


def _sample(example: Example, answer: str) -> tuple[str, str, str]:
    source = as_text(example.source).replace("\t", " ")
    return shorten(source, SHOWN_LETTERS, placeholder=" …"), example.target, answer


def _maps(task: Any, examples: list[Example]) -> list[dict[str, Any]]:
    """Return where the model looks, or copies from, while it writes its own answers."""
    return [
        {
            "source": shorten(as_text(example.source), 80, placeholder=" …"),
            "target": example.target,
            "kind": found.kind,
            "rows": found.labels[0],
            "columns": found.labels[1],
            "weights": [[round(weight, 3) for weight in row] for row in found.mean().tolist()],
        }
        for example, found in zip(examples, task.attend(examples), strict=True)
        if found.weights.shape[0]
    ]


def _join(name: str, folder: Path) -> list[dict[str, Any]]:
    if name == "summaries":
        return _leads(folder)
    return _ways_to_reply(folder) if name == "dialogue" else []


def _leads(folder: Path) -> list[dict[str, Any]]:
    """Measure the first sentence as a summary, once for each data set."""
    rows = []
    for data in ("synopsis", "scitldr"):
        place = folder / f"{data}-{POINTERS[0]}-seed1"
        if not (place / runs.METRICS).exists():
            continue
        task = runs.load(place, "cpu")
        test = _read_test(task, place)
        leads = [first_sentence(example.source) for example in test]
        names = [name for name in task.recipe.metrics if name in METRICS]
        rows.append(
            {
                "name": "lead",
                "data": data,
                "test": {"scores": _measure(names, leads, test), "num_examples": len(test)},
                "samples": [_sample(*pair) for pair in zip(test, leads, strict=True)][:NUM_SAMPLES],
            }
        )
    return rows


def _ways_to_reply(folder: Path) -> list[dict[str, Any]]:
    """Reply by beam, by drawing and reranked, and measure how varied the replies are."""
    place, back = folder / "replies-seed1", folder / "reversed-seed1"
    if not all((one / runs.METRICS).exists() for one in (place, back)):
        return []
    task, reverse = runs.load(place), runs.load(back)
    test = _read_test(task, place)[:NUM_REPLIES]
    sources = [example.source for example in test]
    drawn = replace(task.recipe.search, temperature=0.8, top_p=0.9)
    reranked = reranking.rerank(task, reverse, sources, reverse_target=reranking.last_turn)
    ways = {
        "people": [example.target for example in test],
        "beam": task.translate(sources),
        "drawn": task.translate(sources, search=drawn),
        "reranked": [found[0].text for found in reranked],
    }
    return [
        {
            "name": name,
            "test": {
                "scores": _measure(("distinct1", "distinct2"), replies, test),
                "num_examples": len(test),
                "mean_words": round(sum(len(one.split()) for one in replies) / len(test), 2),
                "num_different": len({*replies}),
            },
            "samples": [_sample(*pair) for pair in zip(test, replies, strict=True)][:NUM_SAMPLES],
        }
        for name, replies in ways.items()
    ]


def _measure(
    names: Sequence[str], answers: Sequence[str], test: Sequence[Example]
) -> dict[str, Any]:
    references = [[example.target, *example.references] for example in test]
    found = measure(names, [[one] for one in answers], references, num_bootstrap=NUM_BOOTSTRAP)
    return {name: result.to_dict() for name, result in found.items()}


if __name__ == "__main__":
    main()
