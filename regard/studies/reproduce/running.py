"""Run one experiment and write its results to a folder."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.core.tables import pick, resolve
from regard.runs.provenance import describe_provenance
from regard.runs.request import Request
from regard.runs.train import train
from regard.studies.reproduce.catalog import experiments
from regard.studies.reproduce.findings import Findings


def reproduce(name: str, folder: Path, *, seed: int = 1) -> Findings:
    """Run an experiment and write its numbers, plots and page to a folder.

    Args:
        name: Name of the experiment.
        folder: Folder of the files.
        seed: Random seed.
    """
    experiment = pick(experiments(), name, "name")
    started, cpu_started = time.perf_counter(), time.process_time()
    findings: Findings = resolve(experiment.function)(seed, folder)
    seconds = round(time.perf_counter() - started, 1)
    # Without the time of other programs; of all threads.
    cpu_seconds = round(time.process_time() - cpu_started, 1)
    provenance = describe_provenance(torch.device("cpu"))
    provenance |= {
        "command": f"regard reproduce {name} --seed {seed}",
        "seed": seed,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }
    findings.save(
        folder,
        title=experiment.title,
        description=experiment.description,
        provenance=provenance,
    )
    return findings


def train_run(request: Request, seed: int) -> Any:
    """Train a request on the CPU with a seed and return the task; an older run is replaced."""
    seeded = replace(
        request,
        settings=(f"seed={seed}", *request.settings),
        out=request.out.with_name(f"{request.out.name}-{seed}"),
        device="cpu",
        is_forced=True,
    )
    return train(seeded).predictor
