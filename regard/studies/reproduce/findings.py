"""Experiments that papers are known for, by name, and their findings as files in a folder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from regard.core.config import read_toml
from regard.core.files import write_json, write_text
from regard.core.tables import pick, resolve
from regard.plots import figure as picture
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
"""From name to the experiment, a function of a seed and of a folder for the runs it trains."""

_ABOUT = read_toml(Path(__file__).with_name("about.toml"))


def about(name: str) -> str:
    """Return what an experiment does, as about.toml describes it."""
    text: str = _ABOUT[name]
    return " ".join(text.split())


def train_once(request: Request, seed: int) -> Any:
    """Return the task that a request trains, or that an earlier call trained with this seed."""
    out = request.out.with_name(f"{request.out.name}-{seed}")
    if (out / METRICS).exists():
        return load_one(out)
    seeded = replace(request, settings=(f"seed={seed}", *request.settings), out=out)
    return train(seeded.resume_if_started()).predictor


@dataclass(frozen=True)
class Relation:
    """A known result of the experiment, and whether it was reproduced."""

    claim: str
    holds: bool


@dataclass(frozen=True)
class Plot:
    """A plot and the line below it."""

    figure: Figure
    caption: str


@dataclass(frozen=True)
class Findings:
    """What one experiment found."""

    title: str
    about: str
    """What was done, in a few sentences."""
    numbers: Mapping[str, Mapping[str, float]]
    """Row by row, each measure by name; every row has the same measures."""
    relations: tuple[Relation, ...]
    plots: Mapping[str, Plot]
    """By file name, without its ending."""

    @property
    def is_as_expected(self) -> bool:
        """Whether every relation holds."""
        return all(relation.holds for relation in self.relations)

    @property
    def measures(self) -> list[str]:
        """Names of the measures, in order."""
        return list(next(iter(self.numbers.values())))

    def save(self, folder: Path, making: Mapping[str, Any]) -> None:
        """Write plots, numbers and a page into a folder.

        Args:
            folder: Made if it is not there; files of the same names are replaced.
            making: How the numbers came about: command, seed, versions.
        """
        for name, drawn in self.plots.items():
            for suffix in (".svg", ".png"):
                picture.save(folder / f"{name}{suffix}", drawn.figure)
        relations = [{"claim": one.claim, "holds": one.holds} for one in self.relations]
        numbers = {name: dict(row) for name, row in self.numbers.items()}
        write_json(folder / RESULTS, {**making, "numbers": numbers, "relations": relations})
        write_text(folder / REPORT, self._page(making))

    def _page(self, making: Mapping[str, Any]) -> str:
        rows = [
            [name, *(f"{value:.3f}" for value in row.values())]
            for name, row in self.numbers.items()
        ]
        verdicts = [["yes" if one.holds else "no", one.claim] for one in self.relations]
        plots = [figure(picture.to_svg(one.figure), one.caption) for one in self.plots.values()]
        held = sum(one.holds for one in self.relations)
        sections = [
            Section("", cards({"relations that hold": f"{held} of {len(self.relations)}"})),
            Section("What was done", paragraph(self.about)),
            Section("Numbers", table(["", *self.measures], rows)),
            Section("What should be seen", table(["holds", "relation"], verdicts)),
            Section("Pictures", join(*plots)),
            Section("How it was made", facts(making)),
        ]
        return report(self.title, sections)


def reproduce(name: str, folder: Path, *, seed: int = 1) -> Findings:
    """Make an experiment again and leave its numbers, pictures and page in a folder.

    Args:
        name: A row of `REPRODUCTIONS`.
        folder: Where the files go.
        seed: What its chance starts from.
    """
    findings: Findings = resolve(pick(REPRODUCTIONS, name, "name"))(seed, folder)
    making = describe_provenance(torch.device("cpu"))
    making |= {"command": f"regard reproduce {name} --seed {seed}", "seed": seed}
    findings.save(folder, making)
    return findings
