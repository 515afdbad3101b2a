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
from functools import partial
from pathlib import Path
from typing import Any

import gather
import measure
import prepare
from plan import PLANS, RESULTS, Plan, Run, check, read_plan
from results import Row, rounded, summarise, without_paths, write_results

from regard.core.files import read_json, read_json_lines
from regard.core.tables import did_you_mean
from regard.runs import folder as runs

Planned = list[tuple[Run, Path]]
"""Runs with their run folders."""


def main() -> None:
    """Run the plans named on the command line."""
    options = _parse()
    plans = [read_plan(_find(name, options.plans)) for name in options.names]
    if not options.gather:
        for plan in plans:
            _prepare(plan, options)
    if options.prepare:
        return
    planned = {plan.name: _runs_of(plan, options) for plan in plans if plan.runs}
    if not options.gather:
        chosen = _choose([one for several in planned.values() for one in several], options.only)
        train_all(chosen, jobs=options.jobs, threads=options.threads, overrides=options.set)
    trained = [plan for plan in plans if plan.runs]
    faults = [fault for plan in trained for fault in _write(plan, planned[plan.name], options)]
    if faults:
        raise SystemExit("\n".join(["Failed:", *faults]))


def _prepare(plan: Plan, options: argparse.Namespace) -> None:
    """Write the data files of a plan, and run its benchmark."""
    for name, argument in plan.prepare.items():
        prepare.STEPS[name](options.runs / plan.name, argument)
    if plan.benchmark and not options.prepare:
        measure.BENCHMARKS[plan.benchmark](options.out, dict(w.split("=") for w in options.set))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", metavar="PLAN", help="names of plans, or TOML files")
    parser.add_argument("--jobs", type=int, default=1, help="number of runs side by side")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each run")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of run folders")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of result files")
    parser.add_argument("--plans", type=Path, default=PLANS, help="folder of plans")
    parser.add_argument("--seeds", type=int, default=0, help="only seeds up to this one")
    parser.add_argument("--only", default="", help="names of runs to train, joined by commas")
    parser.add_argument("--gather", action="store_true", help="only gather finished runs")
    parser.add_argument("--prepare", action="store_true", help="only write data files")
    parser.add_argument("--set", nargs="*", default=[], help="overrides of every run")
    return parser.parse_args()


def _find(name: str, folder: Path) -> Path:
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    if not path.exists():
        names = [path.stem for path in folder.glob("*.toml")]
        raise SystemExit(f"There is no plan '{name}'.{did_you_mean(name, names)}")
    return path


def _runs_of(plan: Plan, options: argparse.Namespace) -> Planned:
    return [
        (run, options.runs / plan.name / run.folder)
        for run in plan.runs
        if run.seed <= (options.seeds or run.seed)
    ]


def _choose(planned: Planned, only: str) -> Planned:
    """Return the runs of some names and the runs that they need; all if none is named."""
    if not only:
        return planned
    names = {run.name for run, _ in planned}
    chosen = only.split(",")
    for name in chosen:
        if name not in names:
            raise SystemExit(
                f"`--only` must name runs, but '{name}' is none.{did_you_mean(name, names)}"
            )
    needed = {need for run, _ in planned if run.name in chosen for need in run.needs}
    return [
        (run, folder)
        for run, folder in planned
        if run.name in chosen or f"{folder.parent.name}/{folder.name}" in needed
    ]


def train_all(planned: Planned, *, jobs: int, threads: int, overrides: list[str]) -> None:
    """Train every run that is not finished, after those that it needs."""
    # A run that waits for another occupies a thread of its own, not one of the job slots.
    slots = ThreadPoolExecutor(jobs)
    futures: dict[Path, Future[None]] = {}
    with ThreadPoolExecutor(max(1, len(planned))) as waiting:
        for run, folder in planned:
            needed = [folder.parent.parent / need for need in run.needs]
            for other in needed:
                if other not in futures and not (other / runs.METRICS).exists():
                    raise SystemExit(f"{folder} needs {other}. Run its plan before this one.")
            before = [futures[other] for other in needed if other in futures]
            train = partial(_train, run, folder, overrides=overrides, threads=threads)
            futures[folder] = (
                waiting.submit(_train_after, before, slots, train)
                if before
                else slots.submit(train)
            )
    slots.shutdown()
    for future in futures.values():
        future.result()


def _train_after(
    before: list["Future[None]"], slots: ThreadPoolExecutor, train: Callable[[], None]
) -> None:
    for future in before:
        future.result()
    slots.submit(train).result()


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
    finished = [(run, folder) for run, folder in planned if (folder / runs.METRICS).exists()]
    rows: list[Row] = []
    for run, folder in finished:
        is_first = all(row["name"] != run.name for row in rows)
        row = _attempt(
            partial(_gather, plan, run, folder, out=options.out, is_first=is_first),
            str(folder),
            faults,
        )
        rows += [row] if row else []
    print(f"{plan.name}: gathered {len(rows)} of {len(planned)} runs", flush=True)
    if not rows:
        return faults
    value: Row = {"experiment": plan.name, "command": _command(plan, options), "runs": rows}
    context = gather.Together(options.out, [(run, folder) for run, folder in finished], rows)
    for name, argument in plan.join.items():
        step = partial(gather.JOINED[name], context, argument)
        value.update(_attempt(step, f"{plan.name}: {name}", faults) or {})
    checks = [_attempt(partial(check, one, rows), str(one), faults) for one in plan.expect]
    value["expectations"] = [{"claim": one[0], "holds": one[1]} for one in checks if one]
    for one in value["expectations"]:
        print(f"{'holds' if one['holds'] else 'FAILS'}: {one['claim']}", flush=True)
        faults += [] if one["holds"] else [f"expectation: {one['claim']}"]
    write_results(options.out / f"{plan.name}.json", rounded(value))
    return faults


def _gather(plan: Plan, run: Run, folder: Path, *, out: Path, is_first: bool) -> Row:
    """Return the summary of a finished run with what the plan's extractors add."""
    finished = gather.Finished(run, folder, out)
    metrics = read_json(folder / runs.METRICS)
    metrics["command"] = without_paths(metrics["command"], folder.parent.parent)
    rows = read_json_lines(folder / runs.TRAINING_LOG)
    settings = runs.read_config(folder)["recipe"]
    added: Row = {}
    for name, argument in plan.gather.items():
        extract, is_every_run = gather.EXTRACTORS[name]
        if is_first or is_every_run:
            added |= extract(finished, argument)
    for part in ("scores", "groups"):
        where = metrics["test"]["scores"] if part == "scores" else metrics["test"]
        where.update(added.pop(f"test_{part}", {}))
    row = {"name": run.name, "recipe": run.recipe, **metrics}
    row |= {"settings": settings, "validations": [row for row in rows if row["kind"] == "valid"]}
    keep = {**plan.keep, "test": {**plan.keep.get("test", {})}}
    return summarise(row, keep, is_first=is_first) | added


def _attempt(step: Callable[[], Any], what: str, faults: list[str]) -> Any:
    """Return what a step returns; if it fails, print why and note it."""
    try:
        return step()
    except (Exception, SystemExit):
        traceback.print_exc()
        faults.append(what)
        return None


def _command(plan: Plan, options: argparse.Namespace) -> str:
    words = ["python", "benchmarks/run.py", plan.name, "--jobs", str(options.jobs)]
    words += ["--seeds", str(options.seeds)] if options.seeds else []
    names = {run.name for run in plan.runs}
    if only := ",".join(name for name in options.only.split(",") if name in names):
        words += ["--only", shlex.quote(only)]
    return " ".join([*words, *(["--set", *options.set] if options.set else [])])


if __name__ == "__main__":
    main()
