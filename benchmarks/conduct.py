"""What the scripts of experiments share: their arguments, their runs, and one JSON file each."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from side_by_side import Run, train_all

from regard.core.files import read_json, read_json_lines, write_json
from regard.core.tables import pick
from regard.tasks import runs

Plan = Callable[[Path], list[Run]]
"""The folder of an experiment's runs → its runs."""


def arguments(parser: argparse.ArgumentParser, plans: Mapping[str, Plan]) -> argparse.Namespace:
    """Add what every such script takes, and read the command line."""
    parser.add_argument("experiments", nargs="*", help=", ".join(plans))
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--threads", type=int, default=1, help="processor threads of a run")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run folders go")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="where JSON goes")
    parser.add_argument("--seeds", type=int, default=9, help="runs of one kind at most")
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
        started = time.perf_counter()
        train_all(planned, jobs=asked.jobs, threads=asked.threads, words=asked.set)
        print(f"all runs took {time.perf_counter() - started:.0f} s")
    for name in asked.experiments:
        places = [(run, folder / run.folder) for run, folder in planned if folder.name == name]
        rows = [gather(run, place) for run, place in places if (place / runs.METRICS).exists()]
        value: dict[str, Any] = {"experiment": name, "command": _command(name, asked)}
        value["runs"] = rows
        if join is not None:
            value["together"] = join(name, asked.runs / name)
        write_json(asked.out / f"{name}.json", value)


def describe(run: Run, place: Path) -> dict[str, Any]:
    """Return what every finished run has to tell: how it was made, how it learned, its scores."""
    metrics = read_json(place / runs.METRICS)
    # Where the data lies is nobody's business.
    metrics["command"] = metrics["command"].replace(
        os.environ.get("REGARD_DATA", "\0"), "$REGARD_DATA"
    )
    settings = runs.read_config(place)["recipe"]
    scored = settings.get("validation", {}).get("metric", "accuracy")
    keys = ("step", "loss", "value", "accuracy", scored, "seconds")
    journal = [
        {key: row[key] for key in dict.fromkeys(keys) if key in row}
        for row in read_json_lines(place / runs.JOURNAL)
        if row["kind"] == "valid"
    ]
    return {
        "name": run.name,
        "recipe": run.recipe,
        **metrics,
        "settings": settings,
        "journal": journal,
    }


def _command(name: str, asked: argparse.Namespace) -> str:
    words = ["python", f"benchmarks/{Path(sys.argv[0]).name}", name, "--jobs", str(asked.jobs)]
    if getattr(asked, "eye", None):
        words += ["--eye", *map(str, asked.eye)]
    if asked.set:
        words += ["--set", *asked.set]
    return " ".join(words)
