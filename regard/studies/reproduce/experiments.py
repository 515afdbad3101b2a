"""Experiments that lectures and papers are known for, made again by name."""

from collections.abc import Callable
from pathlib import Path

import torch

from regard.core.tables import pick
from regard.runs.folder import describe_making
from regard.studies.reproduce.captions import show_attend_tell
from regard.studies.reproduce.findings import Findings
from regard.studies.reproduce.regression import nadaraya_watson
from regard.studies.reproduce.sentence_vectors import sentence_vectors

REPRODUCTIONS: dict[str, Callable[[int, Path], Findings]] = {
    "nadaraya-watson": lambda seed, _folder: nadaraya_watson(seed),
    "show-attend-tell": show_attend_tell,
    "sentence-vectors": sentence_vectors,
}
"""From name to the experiment, which takes a seed and a folder for what it trains."""


def reproduce(name: str, folder: Path, *, seed: int = 1) -> Findings:
    """Make an experiment again and leave its numbers, pictures and page in a folder.

    Args:
        name: A row of `REPRODUCTIONS`.
        folder: Where the files go.
        seed: What its chance starts from.
    """
    findings = pick(REPRODUCTIONS, name, "name")(seed, folder)
    making = describe_making(torch.device("cpu"))
    making |= {"command": f"regard reproduce {name} --seed {seed}", "seed": seed}
    findings.save(folder, making)
    return findings
