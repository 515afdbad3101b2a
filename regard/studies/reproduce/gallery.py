"""Run all experiments in parallel processes, and write an index page of their results."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.core.files import read_json, write_json, write_text
from regard.core.logging import logger
from regard.core.progress import counting, format_seconds
from regard.core.threads import num_cores
from regard.plots.html import Entry, Section, cards, facts, gallery, paragraph, report
from regard.runs.provenance import describe_provenance
from regard.studies.reproduce.catalog import CHAPTERS, Experiment, experiments
from regard.studies.reproduce.findings import REPORT, RESULTS

INDEX = "index.html"
SUMMARY = "gallery.json"
LOG = "log.txt"

DOES_NOT_HOLD = 1
"""Exit code of an experiment with a claim that does not hold."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of one experiment of the gallery."""

    experiment: Experiment
    results: dict[str, Any] | None
    """The saved results; None if the experiment failed."""

    @property
    def num_claims(self) -> int:
        """Number of claims."""
        return len(self.results["claims"]) if self.results else 0

    @property
    def num_held(self) -> int:
        """Number of claims that hold."""
        return sum(claim["holds"] for claim in self.results["claims"]) if self.results else 0

    @property
    def is_as_expected(self) -> bool:
        """Whether the experiment ran and all its claims hold."""
        return self.results is not None and self.num_held == self.num_claims

    @property
    def note(self) -> str:
        """Number of claims that hold and time, or where to find the messages."""
        if self.results is None:
            return f"failed: {self.experiment.name}/{LOG}"
        time = format_seconds(self.results["seconds"])
        return f"{self.num_held} of {self.num_claims} claims hold · {time}"


def reproduce_all(folder: Path, *, seed: int = 1) -> list[Outcome]:
    """Run every experiment in a process of its own and write an index page.

    One process per core runs at a time, each with one thread: small models cannot use several
    cores fully. An experiment that fails does not stop the others.

    Args:
        folder: Folder of the gallery, with one folder per experiment.
        seed: Random seed of all experiments.
    """
    all_experiments = list(experiments().values())
    started = time.perf_counter()
    # The longest first, so that no core waits for the last one.
    by_time = sorted(all_experiments, key=lambda one: -one.seconds)
    total = sum(max(1, round(one.seconds)) for one in by_time)
    outcomes: dict[str, Outcome] = {}
    with (
        counting("Reproducing", total) as advance,
        ThreadPoolExecutor(max_workers=num_cores()) as pool,
    ):
        futures = [pool.submit(_run, one, folder / one.name, seed) for one in by_time]
        try:
            for future in as_completed(futures):
                outcome = future.result()
                name = outcome.experiment.name
                outcomes[name] = outcome
                advance(max(1, round(outcome.experiment.seconds)))
                logger.info("%s: %s", name, outcome.note)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    ordered = [outcomes[one.name] for one in all_experiments]
    provenance = describe_provenance(torch.device("cpu"))
    provenance |= {"command": f"regard reproduce --all --seed {seed}", "seed": seed}
    provenance["seconds"] = round(time.perf_counter() - started, 1)
    write_index(folder, ordered, provenance)
    return ordered


def write_index(folder: Path, outcomes: Sequence[Outcome], provenance: dict[str, Any]) -> None:
    """Write the index page of a gallery, and a summary of all claims as JSON."""
    num_held = sum(one.num_held for one in outcomes)
    num_claims = sum(one.num_claims for one in outcomes)
    num_as_expected = sum(one.is_as_expected for one in outcomes)
    sections = [
        Section(
            "",
            cards(
                {
                    "experiments as expected": f"{num_as_expected} of {len(outcomes)}",
                    "claims that hold": f"{num_held} of {num_claims}",
                }
            ),
        ),
        Section(
            "",
            paragraph(
                "Experiments of the lectures, each on data that is generated on the spot. A page "
                "states what is claimed, what came out and whether it holds."
            ),
        ),
    ]
    for chapter, title in CHAPTERS.items():
        entries = [_entry(one) for one in outcomes if one.experiment.chapter == chapter]
        if entries:
            sections.append(Section(title, gallery(entries)))
    sections.append(Section("Provenance", facts(provenance)))
    write_text(folder / INDEX, report("Experiments of the lectures", sections))
    summary = {
        one.experiment.name: {key: one.results[key] for key in ("seconds", "cpu_seconds", "claims")}
        for one in outcomes
        if one.results
    }
    write_json(folder / SUMMARY, {**provenance, "experiments": summary})


def _run(experiment: Experiment, folder: Path, seed: int) -> Outcome:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).unlink(missing_ok=True)
    command = [sys.executable, "-m", "regard", "reproduce", experiment.name, "--seed", str(seed)]
    with (folder / LOG).open("w", encoding="utf-8") as log:
        process = subprocess.run(
            [*command, "--out", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
    if process.returncode not in (0, DOES_NOT_HOLD) or not (folder / RESULTS).exists():
        return Outcome(experiment, None)
    return Outcome(experiment, read_json(folder / RESULTS))


def _entry(outcome: Outcome) -> Entry:
    experiment, results = outcome.experiment, outcome.results
    plots = results["plots"] if results else []
    return Entry(
        title=experiment.title,
        href=f"{experiment.name}/{REPORT if results else LOG}",
        image=f"{experiment.name}/{plots[0]}.png" if plots else "",
        text=experiment.summary,
        note=outcome.note,
    )
