"""Train the runs of plans side by side, gather their results and check what must hold.

    python benchmarks/run.py multi30k captioning --jobs 4
    python benchmarks/run.py cost --set device=cuda

Finished runs are kept and interrupted ones resume. Each plan gets one file,
`docs/results/PLAN.json`; `benchmarks/pages.py` generates the pages. Plans that measure time call a
function of `benchmarks/measure.py` instead, with `--set` as its arguments. `--prepare` only writes
the data files of the plans.
"""

import argparse
import os
import shlex
import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import gather
import gather_alignment as alignment
import gather_media as media
import gather_replies as replies
import gather_vectors as vectors
import measure
import prepare
from plan import PLANS, RESULTS, Plan, Run, check, read_plan
from results import Row, rounded, summarise, without_paths, write_results

from regard.core.files import read_json, read_json_lines
from regard.core.tables import did_you_mean
from regard.runs import folder as runs

EVERY_SEED = {
    one.__name__: one
    for one in (
        *gather.EVERY_SEED, *media.EVERY_SEED, *alignment.EVERY_SEED, *vectors.EVERY_SEED,
    )
}  # fmt: skip
FIRST_SEED = {one.__name__: one for one in (*gather.FIRST_SEED, *media.FIRST_SEED)}
JOINED = {
    one.__name__: one for one in (*gather.JOINED, *media.JOINED, *alignment.JOINED, *replies.JOINED)
}
"""Extractors by the name in a plan."""
Planned = list[tuple[Run, Path]]
"""Runs with their run folders."""


def main() -> None:
    """Run the plans named on the command line."""
    options = _parse()
    plans = [read_plan(_find(name)) for name in options.names]
    for plan in plans if not options.gather else ():
        for name, argument in plan.prepare.items():
            prepare.STEPS[name](options.runs / plan.name, argument)
        if plan.benchmark and not options.prepare:
            arguments = dict(word.split("=") for word in options.set)
            measure.BENCHMARKS[plan.benchmark](options.out, arguments)
    if options.prepare:
        return
    planned: dict[str, Planned] = {}
    for plan in plans:
        chosen = [run for run in plan.runs if run.seed <= (options.seeds or run.seed)]
        planned[plan.name] = [(run, options.runs / plan.name / run.folder) for run in chosen]
    if not options.gather:
        wanted = _choose([one for several in planned.values() for one in several], options.only)
        train_all(wanted, jobs=options.jobs, threads=options.threads, overrides=options.set)
    faults = [fault for plan in plans for fault in _write(plan, planned[plan.name], options)]
    if faults:
        raise SystemExit("\n".join(["Failed:", *faults]))


def _parse() -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("names", nargs="+", metavar="PLAN", help="names of plans, or TOML files")
    parser.add_argument("--jobs", type=int, default=1, help="number of runs side by side")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each run")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of run folders")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of result files")
    parser.add_argument("--seeds", type=int, default=0, help="only seeds up to this one")
    parser.add_argument("--only", default="", help="names of runs to train, joined by commas")
    parser.add_argument("--gather", action="store_true", help="only gather finished runs")
    parser.add_argument("--prepare", action="store_true", help="only write data files")
    parser.add_argument("--set", nargs="*", default=[], help="overrides of every run")
    return parser.parse_args()


def _find(name: str) -> Path:
    path = Path(name) if name.endswith(".toml") else PLANS / f"{name}.toml"
    if not path.exists():
        names = [path.stem for path in PLANS.glob("*.toml")]
        raise SystemExit(f"There is no plan '{name}'.{did_you_mean(name, names)}")
    return path


def _choose(planned: Planned, only: str) -> Planned:
    """Return the runs of some names and the runs that they need; all if none is named."""
    if not only:
        return planned
    names, chosen = {run.name for run, _ in planned}, only.split(",")
    if unknown := [name for name in chosen if name not in names]:
        hint = did_you_mean(unknown[0], names)
        raise SystemExit(f"`--only` must name runs, but '{unknown[0]}' is none.{hint}")
    named = [(run, folder) for run, folder in planned if run.name in chosen]
    needed = {folder.parent.parent / need for run, folder in named for need in run.needs}
    return [one for one in planned if one in named or one[1] in needed]


def train_all(planned: Planned, *, jobs: int, threads: int, overrides: list[str]) -> None:
    """Train every run that is not finished, after those that it needs."""
    futures: dict[Path, Future[None]] = {}

    def train(run: Run, folder: Path, before: list[Future[None]]) -> None:
        for future in before:
            future.result()
        _train(run, folder, overrides=overrides, threads=threads)

    with ThreadPoolExecutor(jobs) as pool:
        # Runs that wait for others come last, so that they do not keep a thread from these.
        for run, folder in sorted(planned, key=lambda one: bool(one[0].needs)):
            needed = [folder.parent.parent / need for need in run.needs]
            for other in needed:
                if other not in futures and not (other / runs.METRICS).exists():
                    raise SystemExit(f"{folder} needs {other}. Run its plan before this one.")
            before = [futures[other] for other in needed if other in futures]
            futures[folder] = pool.submit(train, run, folder, before)
    for future in futures.values():
        future.result()


def _train(run: Run, folder: Path, *, overrides: list[str], threads: int) -> None:
    if (folder / runs.METRICS).exists():
        return
    data = os.environ.get("REGARD_DATA", "")
    paths = {"runs": str(folder.parent.parent), "folder": str(folder.parent), "data": data}
    words = [*run.data, "--recipe", run.recipe, "--out", str(folder)]
    words.append("--resume" if (folder / "resume").exists() else "--force")
    words += [f"seed={run.seed}", *run.overrides, *overrides]
    for placeholder, path in paths.items():
        words = [word.replace(f"{{{placeholder}}}", path) for word in words]
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with (folder / "log.txt").open("w", encoding="utf-8") as log:
        command = [sys.executable, "-m", "regard", "train", *words]
        done = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False)
    tail = (folder / "log.txt").read_text(encoding="utf-8").strip().splitlines()[-8:]
    print(f"== {folder.name}: exit status {done.returncode}", *tail, sep="\n   ", flush=True)


def _write(plan: Plan, planned: Planned, options: argparse.Namespace) -> list[str]:
    """Write the result file of a plan; return what failed."""
    faults: list[str] = []

    def attempt(what: str, step: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a step returns; if it fails, print why and note it."""
        try:
            return step(*arguments)
        except (Exception, SystemExit):
            traceback.print_exc()
            faults.append(what)
            return None

    gathered: dict[gather.Finished, Row] = {}
    for run, folder in planned:
        if (folder / runs.METRICS).exists():
            finished = gather.Finished(run, folder, options.out)
            is_first = all(row["name"] != run.name for row in gathered.values())
            # The copy, and with it the model that it loads, is dropped after each run.
            if row := attempt(str(folder), _gather, plan, replace(finished), is_first):
                gathered[finished] = row
    rows = list(gathered.values())
    if planned:
        print(f"{plan.name}: gathered {len(rows)} of {len(planned)} runs", flush=True)
    if not rows:
        return faults
    value: Row = {"experiment": plan.name, "command": _command(plan, options), "runs": rows}
    together = gather.Together(list(gathered), rows)
    for name, argument in plan.join.items():
        value.update(attempt(f"{plan.name}: {name}", JOINED[name], together, argument) or {})
    checks = [attempt(str(one), check, one, rows) for one in plan.expect]
    value["expectations"] = [{"claim": one[0], "holds": one[1]} for one in checks if one]
    for one in value["expectations"]:
        print(f"{'holds' if one['holds'] else 'FAILS'}: {one['claim']}", flush=True)
        faults += [] if one["holds"] else [f"expectation: {one['claim']}"]
    write_results(options.out / f"{plan.name}.json", rounded(value))
    return faults


def _gather(plan: Plan, finished: gather.Finished, is_first: bool) -> Row:
    """Return the summary of a finished run with what the plan's extractors add."""
    run, folder = finished.run, finished.folder
    metrics = read_json(folder / runs.METRICS)
    metrics["command"] = without_paths(metrics["command"], folder.parent.parent)
    added: Row = {}
    for name, argument in plan.gather.items():
        if name in EVERY_SEED or is_first:
            added |= (EVERY_SEED | FIRST_SEED)[name](finished, argument)
    metrics["test"]["scores"].update(added.pop("test_scores", {}))
    metrics["test"].update(added.pop("test_groups", {}))
    log = read_json_lines(folder / runs.TRAINING_LOG)
    row = {"name": run.name, "recipe": run.recipe, **metrics}
    row["settings"] = runs.read_config(folder)["recipe"]
    row["validations"] = [line for line in log if line["kind"] == "valid"]
    return summarise(row, plan.keep, is_first=is_first) | added


def _command(plan: Plan, options: argparse.Namespace) -> str:
    words = ["python", "benchmarks/run.py", plan.name, "--jobs", str(options.jobs)]
    words += ["--seeds", str(options.seeds)] if options.seeds else []
    names = {run.name for run in plan.runs}
    if only := ",".join(name for name in options.only.split(",") if name in names):
        words += ["--only", shlex.quote(only)]
    return " ".join([*words, *(["--set", *options.set] if options.set else [])])


if __name__ == "__main__":
    main()
