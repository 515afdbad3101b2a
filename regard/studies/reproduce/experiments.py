"""Experiments that lectures and papers are known for, made again by name."""

from pathlib import Path

import torch

from regard.core.tables import pick, resolve
from regard.runs.folder import describe_making
from regard.studies.reproduce.findings import Findings

REPRODUCTIONS: dict[str, str] = {
    "nadaraya-watson": "regard.studies.reproduce.regression:nadaraya_watson",
    "show-attend-tell": "regard.studies.reproduce.captions:show_attend_tell",
    "sentence-vectors": "regard.studies.reproduce.sentence_vectors:sentence_vectors",
}
"""From name to the experiment, a function of a seed and of a folder for the runs it trains."""


def reproduce(name: str, folder: Path, *, seed: int = 1) -> Findings:
    """Make an experiment again and leave its numbers, pictures and page in a folder.

    Args:
        name: A row of `REPRODUCTIONS`.
        folder: Where the files go.
        seed: What its chance starts from.
    """
    findings: Findings = resolve(pick(REPRODUCTIONS, name, "name"))(seed, folder)
    making = describe_making(torch.device("cpu"))
    making |= {"command": f"regard reproduce {name} --seed {seed}", "seed": seed}
    findings.save(folder, making)
    return findings
