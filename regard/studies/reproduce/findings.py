"""Reproductions by name: run an experiment and write its results to a folder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from regard.core.config import read_toml
from regard.core.files import write_json, write_text
from regard.core.tables import pick, resolve
from regard.plots.figure import save, to_svg
from regard.plots.html import Section, cards, facts, figure, join, paragraph, report, table
from regard.runs.folder import METRICS, describe_provenance, load_one
from regard.runs.request import Request
from regard.runs.train import train

RESULTS = "results.json"
REPORT = "report.html"

REPRODUCTIONS: dict[str, str] = {
    "nadaraya-watson": "regard.studies.reproduce.regression:nadaraya_watson",
    "show-attend-tell": "regard.studies.reproduce.captions:show_attend_tell",
    "sentence-vectors": "regard.studies.reproduce.sentence_vectors:sentence_vectors",
}
"""Experiments by name: functions of a seed and a folder for the trained runs."""

_DESCRIPTIONS = read_toml(Path(__file__).with_name("about.toml"))


def describe(name: str) -> str:
    """Return the description of an experiment from about.toml."""
    text: str = _DESCRIPTIONS[name]
    return " ".join(text.split())


def train_once(request: Request, seed: int) -> Any:
    """Train a request with a seed and return the task; load it if it is already trained."""
    out = request.out.with_name(f"{request.out.name}-{seed}")
    if (out / METRICS).exists():
        return load_one(out)
    seeded = replace(request, settings=(f"seed={seed}", *request.settings), out=out)
    return train(seeded.resume_if_started()).predictor


@dataclass(frozen=True)
class Relation:
    """A known result of an experiment, and whether it was reproduced."""

    claim: str
    holds: bool


@dataclass(frozen=True)
class Plot:
    """A plot and its caption."""

    figure: Figure
    caption: str


@dataclass(frozen=True)
class Findings:
    """Results of one experiment."""

    title: str
    description: str
    """Description of the experiment in a few sentences."""
    numbers: Mapping[str, Mapping[str, float]]
    """Metrics by name for each row of a table; every row has the same metrics."""
    relations: tuple[Relation, ...]
    plots: Mapping[str, Plot]
    """Plots by file name without suffix."""

    @property
    def is_as_expected(self) -> bool:
        """Whether every relation holds."""
        return all(relation.holds for relation in self.relations)

    @property
    def metric_names(self) -> list[str]:
        """Names of the metrics, in order."""
        return list(next(iter(self.numbers.values())))

    def save(self, folder: Path, provenance: Mapping[str, Any]) -> None:
        """Write plots, numbers and a page to a folder.

        Args:
            folder: Folder, created if necessary; files of the same names are replaced.
            provenance: Command, seed and versions.
        """
        for name, plot in self.plots.items():
            for suffix in (".svg", ".png"):
                save(folder / f"{name}{suffix}", plot.figure)
        relations = [{"claim": one.claim, "holds": one.holds} for one in self.relations]
        numbers = {name: dict(row) for name, row in self.numbers.items()}
        write_json(folder / RESULTS, {**provenance, "numbers": numbers, "relations": relations})
        write_text(folder / REPORT, self._page(provenance))

    def _page(self, provenance: Mapping[str, Any]) -> str:
        rows = [
            [name, *(f"{value:.3f}" for value in row.values())]
            for name, row in self.numbers.items()
        ]
        claims = [["yes" if one.holds else "no", one.claim] for one in self.relations]
        plots = [figure(to_svg(plot.figure), plot.caption) for plot in self.plots.values()]
        num_held = sum(one.holds for one in self.relations)
        sections = [
            Section("", cards({"claims that hold": f"{num_held} of {len(self.relations)}"})),
            Section("Experiment", paragraph(self.description)),
            Section("Results", table(["", *self.metric_names], rows)),
            Section("Expected results", table(["holds", "claim"], claims)),
            Section("Plots", join(*plots)),
            Section("Provenance", facts(provenance)),
        ]
        return report(self.title, sections)


def reproduce(name: str, folder: Path, *, seed: int = 1) -> Findings:
    """Run an experiment and write its numbers, plots and page to a folder.

    Args:
        name: Name of the experiment, a key of `REPRODUCTIONS`.
        folder: Folder of the files.
        seed: Random seed.
    """
    findings: Findings = resolve(pick(REPRODUCTIONS, name, "name"))(seed, folder)
    provenance = describe_provenance(torch.device("cpu"))
    provenance |= {"command": f"regard reproduce {name} --seed {seed}", "seed": seed}
    findings.save(folder, provenance)
    return findings
