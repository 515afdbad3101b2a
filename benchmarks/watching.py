"""Train models that answer questions about pictures and tell what happens in videos.

    python benchmarks/watching.py visual-questions video --jobs 8

easy-VQA needs the package `easy-vqa`; everything else is drawn on the spot. The pages are drawn
from the JSON files by `benchmarks/pages.py`.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import conduct
import torch
from representations import show
from results.seeing_questions import EYES
from side_by_side import Run

from regard.core.files import read_json
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.moving import DIRECTIONS
from regard.data.datasets.synthetic.scenes.questions import question_only_accuracy
from regard.data.example import Example
from regard.data.text.columns import as_source
from regard.data.text.readers import read_json_lines
from regard.runs import folder as runs

SEEDS = (1, 2)
NUM_VIDEOS = 2
"""Test videos that are drawn word by word."""
NUM_FRAMES = 6
"""Test videos whose next frame is drawn."""
NUM_TIMED = 200
"""Test videos over which it is averaged when words look."""
LEAST_TIMES = 10
"""A word that comes less often says little about when it looks."""

OPPOSITE = {"left": "right", "right": "left", "up": "down", "down": "up"}
REVERSIBLE = {"alone", "pass"}
"""What happens in videos that, played backwards, set out the other way."""


@dataclass(frozen=True)
class Finished:
    """A run that has been tested."""

    task: Any
    data: str
    """The name of its data set."""
    test: list[Example]
    answers: list[str]

    @property
    def right(self) -> list[str]:
        """What should have been answered."""
        return [example.target for example in self.test]


def _questions(_folder: Path) -> list[Run]:
    """Plan answers about pictures; those about scenes begin with eyes that can describe them."""
    eyes = Run(f"{EYES} xu2015-laptop", "xu2015-laptop", ("scenes",))
    start, needs = f"init_from={{folder}}/{eyes.folder}", (eyes.folder,)
    asked, few = ("scenes:questions,100000",), ("scenes:questions,60000",)
    frozen = (start, 'train.freeze=["encoder.image"]')
    large, small = "scenes-questions", "scenes-questions-laptop"
    return [
        eyes,
        *(Run(f"scenes {large}", large, asked, (start,), seed, needs) for seed in SEEDS),
        Run(f"scenes {small}", small, few, frozen, needs=needs),
        *(Run("easy-vqa easy-vqa", "easy-vqa", ("easy-vqa",), (), seed) for seed in SEEDS),
        Run("easy-vqa easy-vqa-laptop", "easy-vqa-laptop", ("easy-vqa",)),
    ]


def _video(_folder: Path) -> list[Run]:
    """Plan captions and directions, of many videos and of as many as a laptop takes."""
    data = {
        "moving": "moving:40000",
        "moving-laptop": "moving:32000",
        "moving-directions": "moving:directions",
        "moving-directions-laptop": "moving:directions,2000",
        "next-frame": "moving",
        "next-frame-laptop": "moving:2000",
    }
    return [
        Run(recipe, recipe, (name,), (), seed)
        for recipe, name in data.items()
        for seed in (SEEDS[:1] if recipe.endswith("laptop") else SEEDS)
    ]


EXPERIMENTS = {"visual-questions": _questions, "video": _video}


def main() -> None:
    """Train the runs of some experiments and gather what they measured."""
    asked = conduct.arguments(argparse.ArgumentParser(description=__doc__), EXPERIMENTS)
    conduct.experiments(EXPERIMENTS, asked, gather=_gather)


def _gather(run: Run, place: Path) -> dict[str, Any]:
    described = {**conduct.describe(run, place), "data": run.data[0]}
    if run.seed != SEEDS[0] or run.name.startswith(EYES):
        return described
    answers = read_json(place / runs.PREDICTIONS)
    finished = Finished(runs.load(place), run.data[0], _read_test(place), answers)
    return {**described, **GATHERED[_kind(place.parent.name, run)](finished)}


def _kind(experiment: str, run: Run) -> str:
    kinds = (name for name in ("directions", "next-frame") if name in run.recipe)
    return next(kinds, experiment)


def _read_test(place: Path) -> list[Example]:
    path = place / runs.TEST
    lines = path.read_text(encoding="utf-8").split("\n")
    return [example for _, example in read_json_lines(str(path), lines, join=as_source)]


def _of_questions(run: Finished) -> dict[str, Any]:
    """Tell what the picture is worth, and where the first question of each kind looks."""
    half = len(run.test) // 2
    pictures = [example.source[1] for example in run.test]
    asked = [
        (example.source[0], picture)
        for example, picture in zip(run.test, pictures[half:] + pictures[:half], strict=True)
    ]
    other = [found[0].text for found in run.task.predict(asked)]
    return {
        "another picture": _share(other, run.right),
        "question alone": question_only_accuracy(find_data(run.data).train, run.test),
        "maps": [_look(run.task, run.test[row], run.answers[row]) for row in _first(run.test)],
    }


def _first(test: Sequence[Example]) -> list[int]:
    """Return the first question of each kind, each about another scene."""
    found: dict[str, int] = {}
    shown = set()
    for row, example in enumerate(test):
        kind, picture = example.tags[0], example.source[1]
        # Other people's pictures stay where they are.
        if kind not in found and picture not in shown and picture.startswith("scenes/"):
            found[kind] = row
            shown.add(picture)
    return list(found.values())


def _share(answers: Sequence[str], right: Sequence[str]) -> float:
    """Return how many are right, in percent."""
    return 100 * sum(map(str.__eq__, answers, right)) / len(right)


def _look(task: Any, example: Example, answer: str) -> dict[str, Any]:
    """Return where a question and its answer look; the picture can be drawn again."""
    (found,) = task.attend([Example(example.source, answer)])
    weights = found.mean()[0]
    return {
        "question": example.source[0],
        "picture": example.source[1],
        "kind": example.tags[0],
        "right": example.target,
        "answer": answer,
        "looked": found.kind,
        "words": found.labels[1][: found.num_text_tokens],
        "on words": _rounded(weights[: found.num_text_tokens]),
        "grid": found.grid,
        "on cells": _rounded(weights[found.num_text_tokens :]),
    }


def _rounded(weights: torch.Tensor) -> list[float]:
    return [round(weight, 4) for weight in weights.tolist()]


def _of_directions(run: Finished) -> dict[str, Any]:
    """Tell what hangs on the order of the frames: played backwards, and with one frame alone."""
    asked = [example for example in run.test if example.tags[0] in REVERSIBLE]
    right = [example.target for example in asked]
    turned = [OPPOSITE[direction] for direction in right]
    views: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], list[str]]] = {
        "as it is": (lambda video: video, right),
        "backwards, the opposite is right": (lambda video: video.flip(1), turned),
        "the first frame alone": (lambda video: video[:, :1].expand_as(video), right),
    }
    rows = {
        name: _share(_answer(run.task, asked, view), told) for name, (view, told) in views.items()
    }
    return {"views": {**rows, "by chance": 100 / len(DIRECTIONS)}, "num_views": len(asked)}


def _answer(
    task: Any, examples: Sequence[Example], view: Callable[[torch.Tensor], torch.Tensor]
) -> list[str]:
    """Label videos (B, F, C, Y, X) that are changed before they are seen."""
    answers = [""] * len(examples)
    for batch in task.batches(examples):
        with torch.inference_mode():
            found = task.model(view(task.inputs(batch)), batch.source_mask).argmax(-1)
        for row, number in zip(batch.rows, found.tolist(), strict=True):
            answers[row] = task.labels.write(number)
    return answers


def _of_captions(run: Finished) -> dict[str, Any]:
    """Tell when each word looks on average, and when and where in the first videos."""
    asked = [
        Example(example.source, answer)
        for example, answer in zip(run.test, run.answers, strict=True)
    ][:NUM_TIMED]
    found = run.task.attend(asked)
    maps = [
        {
            "video": example.source,
            "right": example.target,
            "words": one.labels[0],
            "grid": one.grid,
            "weights": [_rounded(row) for row in one.mean()],
        }
        for example, one in zip(run.test, found[:NUM_VIDEOS], strict=False)
    ]
    return {"maps": maps, "when": _when(found)}


def _when(found: Sequence[Any]) -> dict[str, list[float]]:
    """Return for each word how its attention is spread over the frames, on average."""
    shares: dict[str, list[torch.Tensor]] = {}
    for one in found:
        by_frame = one.mean().unflatten(1, one.grid).sum((2, 3))  # (T, F)
        for word, row in zip(one.labels[0], by_frame, strict=True):
            shares.setdefault(word, []).append(row / row.sum())
    often = {word: rows for word, rows in shares.items() if len(rows) >= LEAST_TIMES}
    return {word: _rounded(torch.stack(rows).mean(0)) for word, rows in sorted(often.items())}


def _of_next_frame(run: Finished) -> dict[str, Any]:
    """Keep what was read, drawn and right of the first videos."""
    return {"rows": [show(run.task, e.source, e.target) for e in run.test[:NUM_FRAMES]]}


GATHERED: dict[str, Callable[[Finished], dict[str, Any]]] = {
    "visual-questions": _of_questions,
    "directions": _of_directions,
    "next-frame": _of_next_frame,
    "video": _of_captions,
}
"""What the first run of a kind tells besides its scores."""


if __name__ == "__main__":
    main()
