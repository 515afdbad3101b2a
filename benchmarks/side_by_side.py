"""Several trainings side by side, each as its own process, those first that others begin from."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from regard.runs import folder as runs


@dataclass(frozen=True)
class Run:
    """One model to train."""

    name: str
    recipe: str
    data: tuple[str, ...]
    words: tuple[str, ...] = ()
    """Settings; `{folder}` stands for the folder of all runs of the experiment."""
    seed: int = 1
    needs: tuple[str, ...] = ()
    """Folders of runs that must be finished before; `experiment/folder` for another's."""

    @property
    def folder(self) -> str:
        """The name of its run folder."""
        return f"{self.name}-seed{self.seed}".replace(" ", "-").replace(",", "")


def train_all(
    planned: list[tuple[Run, Path]], *, jobs: int, threads: int, words: list[str]
) -> None:
    """Train every run that is not finished yet.

    Args:
        planned: Runs and the folders that hold their run folders, whoever is needed first.
        jobs: How many at once.
        threads: Processor threads of a run.
        words: Settings for every run.
    """
    # One thread a run, since a run that waits for another must not keep a third from starting.
    # Those that need not wait start in the order of the plan.
    slots = ThreadPoolExecutor(jobs)
    done: dict[Path, Future[None]] = {}
    with ThreadPoolExecutor(max(1, len(planned))) as waiting:
        for run, folder in planned:
            places = [_place_of(name, folder) for name in run.needs]
            before = [done[needed] for needed in places if _is_planned(needed, done)]
            place = folder / run.folder
            train = partial(_train, run, place, words=words, threads=threads)
            done[place] = (
                waiting.submit(_train_after, before, slots, train)
                if before
                else slots.submit(train)
            )
    slots.shutdown()
    for future in done.values():
        future.result()


def _place_of(need: str, folder: Path) -> Path:
    """Return the folder of a needed run: beside the others, or among those of an experiment."""
    return folder.parent / need if "/" in need else folder / need


def _is_planned(needed: Path, done: Mapping[Path, object]) -> bool:
    """Tell whether a needed run is to be waited for; if not, it must be finished."""
    if needed not in done and not (needed / runs.METRICS).exists():
        raise SystemExit(f"{needed} is needed first. Name its experiment before the others.")
    return needed in done


def _train_after(
    before: list["Future[None]"], slots: ThreadPoolExecutor, train: Callable[[], None]
) -> None:
    for future in before:
        future.result()
    slots.submit(train).result()


def _train(run: Run, place: Path, *, words: list[str], threads: int) -> None:
    if (place / runs.METRICS).exists():
        return
    settings = [word.format(folder=place.parent) for word in (f"seed={run.seed}", *run.words)]
    command = [sys.executable, "-m", "regard", "train", *run.data, "--recipe", run.recipe]
    # What was interrupted goes on.
    begin = "--resume" if (place / "resume").exists() else "--force"
    command += ["--out", str(place), begin, *settings, *words]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    place.mkdir(parents=True, exist_ok=True)
    with (place / "log.txt").open("w") as log:
        done = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False)
    tail = (place / "log.txt").read_text().strip().splitlines()[-8:]
    print(f"== {run.folder}: exit {done.returncode}", *tail, sep="\n   ", flush=True)
