"""Train on short sources, test on longer ones: every rung, and every kind of position.

    python benchmarks/generalisation.py --jobs 16 --out docs/results

The test set of a run holds every length, so that each is measured where it was trained. The page
is drawn from the JSON file by `benchmarks/pages.py`.
"""

import argparse
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from side_by_side import Run, train_all

from regard.attention.positions import POSITIONS
from regard.core.files import read_json, write_json
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.toys import generate_by_length
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.readers import write_examples
from regard.runs import folder as runs
from regard.studies.ladder import LAPTOP

NUM_TESTED = 200
"""Test examples of a length."""

DATA_SEED = 0
TEST_SEED = 1


@dataclass(frozen=True)
class Problem:
    """What is learned from short examples and asked of longer ones."""

    data: str
    """The data set, with the lengths of its training pairs."""
    trained: tuple[int, int]
    """The least and the greatest of these lengths."""
    tested: tuple[int, ...]
    """Lengths of test examples."""
    unit: str
    """What a length counts."""
    fewer: dict[int, int] = field(default_factory=dict)
    """Test examples of lengths with so few sources that training would have to do without."""
    tokens: str = "whitespace"
    """The kind of tokens on both sides."""


PROBLEMS = {
    "reverse": Problem("reverse:20000,3-10", (3, 10), tuple(range(2, 31, 2)), "letters"),
    "sort": Problem("sort:20000,3-10", (3, 10), tuple(range(2, 31, 2)), "digits", {2: 50}),
    "add": Problem("add:20000,1-3", (1, 3), tuple(range(1, 7)), "digits a number", {1: 20}),
    "numbers": Problem("numbers:5000,1-4", (1, 4), tuple(range(2, 7)), "digits", {2: 20}),
    "dates": Problem(
        "dates:20000,1950-1999",
        (1950, 1999),
        tuple(range(1950, 2041, 10)),
        "first year of a decade",
        tokens="char",
    ),
}

COMMON = (
    "data.batch.max_sentences=64",
    "data.batch.max_tokens=4096",
    "train.max_steps=2000",
    "train.max_epochs=0",
    "train.validate_every=500",
    "train.patience=0",
    "train.average_last=0",
    "train.label_smoothing=0.0",
    "train.schedule.warmup_steps=200",
    "train.precision=fp32",
    "validation.metric=loss",
    "validation.max_examples=50",
    "search.beams=1",
    "search.max_ratio=1.0",
    "search.max_extra=10",
)
"""The same training for all; the rest is in their recipes. Search is greedy, which is
quick and asks nothing of the length of an answer. No answer is cut short: at most, a number of six
digits has three words more than its source has digits."""

APART = ("data.is_joint=false", "model.ties=none")
"""Each side with a vocabulary of its own."""

KINDS = tuple(kind for kind in POSITIONS if kind != "sinusoidal_halves")
"""The one left out has the same columns as another, in another order."""


@dataclass(frozen=True)
class Plan:
    """A run and what it is drawn as."""

    experiment: str
    problem: str
    model: str
    run: Run

    def gather(self, folder: Path) -> dict[str, Any]:
        """Return what a finished run measured."""
        place = folder / self.run.folder
        metrics = read_json(place / runs.METRICS)
        # Where the runs lie is nobody's business.
        metrics["command"] = metrics["command"].replace(str(folder), "runs/generalisation")
        groups = metrics["test"]["by_tag"]
        # Answers are right or wrong here: what is almost right has no score.
        metrics["test"] = {
            "scores": {"accuracy": metrics["test"]["scores"]["accuracy"]},
            "num_examples": metrics["test"]["num_examples"],
            "seconds": metrics["test"]["seconds"],
        }
        curve = [
            {"length": int(group["name"]), "count": group["count"], "accuracy": group["accuracy"]}
            for group in groups
        ]
        return {
            "experiment": self.experiment,
            "problem": self.problem,
            "model": self.model,
            "recipe": self.run.recipe,
            **metrics,
            "curve": sorted(curve, key=lambda point: point["length"]),
            "settings": runs.read_config(place)["recipe"],
        }


def _plan(folder: Path, seeds: int) -> list[Plan]:
    variants = [("rungs", *rung) for rung in _rungs()]
    variants += [("positions", *kind) for kind in _positions()]
    found = []
    for name, problem in PROBLEMS.items():
        data = (str(_path(folder, name, "train")), "--test", str(_path(folder, name, "test")))
        tokens = tuple(f"data.{side}.kind={problem.tokens}" for side in ("source", "target"))
        for experiment, model, recipe, words in variants:
            settings = (*COMMON, *tokens, *words)
            for seed in range(1, seeds + 1):
                run = Run(f"{experiment} {name} {model}", recipe, data, settings, seed)
                found.append(Plan(experiment, name, model, run))
    return found


def _rungs() -> list[tuple[str, str, tuple[str, ...]]]:
    # One language model over both sides has one vocabulary.
    return [(name, recipe, () if name == "prefix-lm" else APART) for name, recipe in LAPTOP.items()]


def _positions() -> list[tuple[str, str, tuple[str, ...]]]:
    # Learned positions have vectors for 512 places: beyond those trained, they are as they began.
    return [
        (
            kind,
            LAPTOP["vaswani2017"],
            (*APART, *(f"model.{side}.positions={kind}" for side in ("encoder", "decoder"))),
        )
        for kind in KINDS
    ]


def _path(folder: Path, problem: str, side: str) -> Path:
    return folder / f"{problem}.{side}.jsonl"


def write_data(folder: Path, name: str) -> None:
    """Write what a problem is trained and tested on.

    The data set's own held-out parts are trained on as well: they hold most of the few sources
    that short lengths have. No source that is tested is trained on, since training leaves it out.
    """
    problem = PROBLEMS[name]
    splits = find_data(problem.data, seed=DATA_SEED)
    assert isinstance(splits, Splits)
    write_examples(_path(folder, name, "train"), [*splits.train, *splits.valid, *splits.test])
    asked = [
        Example(example.source, example.target, tags=(str(length),))
        for length in problem.tested
        for example in generate_by_length(
            name,
            lengths=(length,),
            num=problem.fewer.get(length, NUM_TESTED),
            seed=TEST_SEED,
        )[length]
    ]
    write_examples(_path(folder, name, "test"), asked)


def main() -> None:
    """Train the runs that are asked for, and gather all that are finished."""
    arguments = _parse()
    folder = arguments.runs / "generalisation"
    planned = _plan(folder, arguments.seeds)
    if not arguments.gather:
        chosen = [
            plan
            for plan in planned
            if arguments.only in (None, plan.experiment)
            and (not arguments.problems or plan.problem in arguments.problems)
            and (not arguments.models or plan.model in arguments.models)
        ]
        for name in dict.fromkeys(plan.problem for plan in chosen):
            write_data(folder, name)
        started = time.perf_counter()
        train_all(
            [(plan.run, folder) for plan in chosen],
            jobs=arguments.jobs,
            threads=arguments.threads,
            words=arguments.set,
        )
        print(f"all runs took {time.perf_counter() - started:.0f} s")
    command = f"python benchmarks/generalisation.py --jobs {arguments.jobs}"
    if arguments.set:
        command += f" --set {' '.join(arguments.set)}"
    finished = [plan for plan in planned if (folder / plan.run.folder / runs.METRICS).exists()]
    value = {
        "experiment": "generalisation",
        "command": command,
        "problems": {name: asdict(problem) for name, problem in PROBLEMS.items()},
        "runs": [plan.gather(folder) for plan in finished],
    }
    write_json(arguments.out / "generalisation.json", value)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--threads", type=int, default=1, help="processor threads of a run")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run folders go")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="where JSON goes")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each model")
    parser.add_argument("--gather", action="store_true", help="only gather what is finished")
    parser.add_argument("--only", choices=("rungs", "positions"), help="train half of the runs")
    parser.add_argument("--problems", nargs="*", choices=list(PROBLEMS), help="train on these only")
    models = [*LAPTOP, *KINDS]
    parser.add_argument("--models", nargs="*", choices=models, help="train these only")
    parser.add_argument("--set", nargs="*", default=[], help="settings for every run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
