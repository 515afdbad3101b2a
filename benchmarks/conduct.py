"""What the scripts of experiments share: their arguments, their runs, and one JSON file each."""

import argparse
import os
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from side_by_side import Run, train_all

from regard.core.files import read_json, read_json_lines, write_json
from regard.core.tables import did_you_mean, pick
from regard.runs import folder as runs

Plan = Callable[[Path], list[Run]]
"""The folder of an experiment's runs → its runs."""

Planned = list[tuple[Run, Path]]
"""Runs, and the folders that hold their run folders."""

Told = TypeVar("Told")

SEEDS = 9
"""More than any plan has."""


def arguments(parser: argparse.ArgumentParser, plans: Mapping[str, Plan]) -> argparse.Namespace:
    """Add what every such script takes, and read the command line."""
    parser.add_argument("experiments", nargs="*", help=", ".join(plans))
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--threads", type=int, default=1, help="processor threads of a run")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run folders go")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="where JSON goes")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of one kind at most")
    parser.add_argument("--only", default="", help="names of runs to train, joined by commas")
    parser.add_argument("--gather", action="store_true", help="only gather what is finished")
    parser.add_argument("--set", nargs="*", default=[], help="settings for every run")
    return parser.parse_args()


def experiments(
    plans: Mapping[str, Plan],
    asked: argparse.Namespace,
    *,
    gather: Callable[[Run, Path], dict[str, Any]],
    join: Callable[[str, Path], list[dict[str, Any]]] | None = None,
) -> None:
    """Train the runs of the experiments asked for and write a JSON file for each.

    All that is finished is gathered, whenever it was trained. What cannot be gathered costs
    nothing else, and is named at the end.

    Args:
        plans: What each experiment trains.
        asked: What `arguments` read.
        gather: Tells about a finished run.
        join: Tells about several runs together: the experiment's name and folder → rows.
    """
    planned = [
        (run, asked.runs / name)
        for name in asked.experiments
        for run in pick(plans, name, "experiments")(asked.runs / name)
        if run.seed <= asked.seeds
    ]
    if not asked.gather:
        chosen = choose(planned, asked.only)
        started = time.perf_counter()
        train_all(chosen, jobs=asked.jobs, threads=asked.threads, words=asked.set)
        print(f"all runs took {time.perf_counter() - started:.0f} s")
    faults: list[str] = []
    for name in asked.experiments:
        places = [(run, folder / run.folder) for run, folder in planned if folder.name == name]
        rows = [
            attempt(partial(gather, run, place), str(place), faults)
            for run, place in places
            if (place / runs.METRICS).exists()
        ]
        names = {run.name for run, _ in places}
        value: dict[str, Any] = {"experiment": name, "command": _command(name, asked, names)}
        value["runs"] = [row for row in rows if row is not None]
        print(f"{name}: {len(value['runs'])} of {len(places)} runs gathered", flush=True)
        if not value["runs"]:
            continue
        if join is not None:
            # Written at once, for what comes now may take long.
            write_json(asked.out / f"{name}.json", {**value, "together": []})
            together = attempt(partial(join, name, asked.runs / name), f"{name} together", faults)
            value["together"] = together or []
        write_json(asked.out / f"{name}.json", value)
    end(faults)


def choose(planned: Planned, only: str) -> Planned:
    """Return the runs of some names, joined by commas, and those that they need; all for none."""
    names = {run.name for run, _ in planned}
    asked = only.split(",") if only else names
    for name in asked:
        if name not in names:
            raise SystemExit(
                f"`--only` must name runs, but '{name}' is none.{did_you_mean(name, names)}"
            )
    needed = {need for run, _ in planned if run.name in asked for need in run.needs}
    return [(run, folder) for run, folder in planned if run.name in asked or run.folder in needed]


def attempt(tell: Callable[[], Told], what: str, faults: list[str]) -> Told | None:
    """Return what is told; if that fails, say why, note what is missing, and return nothing."""
    try:
        return tell()
    except (Exception, SystemExit):
        traceback.print_exc()
        faults.append(what)
        return None


def end(faults: list[str]) -> None:
    """Leave a script with an error if something could not be told."""
    if faults:
        raise SystemExit(f"Not gathered, for the reasons above: {', '.join(faults)}.")


def describe(run: Run, place: Path) -> dict[str, Any]:
    """Return what every finished run has to tell: how it was made, how it learned, its scores."""
    metrics = read_json(place / runs.METRICS)
    settings = runs.read_config(place)["recipe"]
    metrics["command"] = without_places(metrics["command"], place)
    settings["start"] = without_places(settings.get("start", ""), place)
    scored = settings.get("validation", {}).get("metric", "accuracy")
    keys = ("step", "loss", "value", "accuracy", scored, "seconds")
    journal = [
        {key: row[key] for key in dict.fromkeys(keys) if key in row}
        for row in read_json_lines(place / runs.TRAINING_LOG)
        if row["kind"] == "valid"
    ]
    return {
        "name": run.name,
        "recipe": run.recipe,
        **metrics,
        "settings": settings,
        "journal": journal,
    }


def without_places(text: str, place: Path) -> str:
    """Return a text that does not tell where data and runs lie, which is nobody's business.

    Args:
        text: A command, or a path.
        place: The folder of the run that it is about.
    """
    text = text.replace(os.environ.get("REGARD_DATA", "\0"), "$REGARD_DATA")
    return text.replace(f"{place.parent.parent}/", "runs/")


def _command(name: str, asked: argparse.Namespace, names: set[str]) -> str:
    words = ["python", f"benchmarks/{Path(sys.argv[0]).name}", name, "--jobs", str(asked.jobs)]
    if getattr(asked, "eye", None):
        words += ["--eye", *map(str, asked.eye)]
    if asked.seeds != SEEDS:
        words += ["--seeds", str(asked.seeds)]
    if only := ",".join(run for run in asked.only.split(",") if run in names):
        words += ["--only", shlex.quote(only)]
    if asked.set:
        words += ["--set", *asked.set]
    return " ".join(words)
