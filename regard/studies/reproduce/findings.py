"""Results of an experiment: claims, tables and plots, saved as JSON, plots and a page."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from regard.core.files import write_json, write_text
from regard.plots.figure import save, to_svg
from regard.plots.html import Section, cards, facts, figure, join, paragraph, report, table

RESULTS = "results.json"
REPORT = "report.html"

FLOAT_FORMAT = ".4g"
"""Format of floats in tables."""

LARGE = 1_000
"""Floats of this size are shown as 12,345 instead of 1.234e+04."""

Table = Mapping[str, Mapping[str, float | str]]
"""Values by column for each named row; every row has the same columns."""


@dataclass(frozen=True)
class Claim:
    """A known result, what came out, and whether it was reproduced."""

    text: str
    """The claim, a sentence in the present tense."""
    outcome: str
    """The measured result, with numbers."""
    holds: bool


@dataclass(frozen=True)
class Plot:
    """A plot and its caption."""

    figure: Figure
    caption: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Results of one experiment."""

    claims: tuple[Claim, ...]
    tables: Mapping[str, Table]
    """Tables by heading."""
    plots: Mapping[str, Plot]
    """Plots by file name without suffix; the first one represents the experiment."""

    @property
    def num_held(self) -> int:
        """Number of claims that hold."""
        return sum(claim.holds for claim in self.claims)

    @property
    def is_as_expected(self) -> bool:
        """Whether every claim holds."""
        return self.num_held == len(self.claims)

    def save(
        self, folder: Path, *, title: str, description: str, provenance: Mapping[str, Any]
    ) -> None:
        """Write plots, numbers and a page to a folder.

        Args:
            folder: Folder, created if necessary; files of the same names are replaced.
            title: Heading of the page.
            description: Description of the experiment.
            provenance: Command, seed, time and versions.
        """
        for name, plot in self.plots.items():
            for suffix in (".svg", ".png"):
                save(folder / f"{name}{suffix}", plot.figure)
        claims = [
            # Comparisons of arrays give NumPy booleans, which JSON does not have.
            {"claim": one.text, "outcome": one.outcome, "holds": bool(one.holds)}
            for one in self.claims
        ]
        tables = {
            heading: {name: dict(row) for name, row in rows.items()}
            for heading, rows in self.tables.items()
        }
        results = {**provenance, "claims": claims, "tables": tables, "plots": list(self.plots)}
        write_text(folder / REPORT, report(title, self._sections(description, provenance)))
        # Written last: a folder with results is complete.
        write_json(folder / RESULTS, results)

    def _sections(self, description: str, provenance: Mapping[str, Any]) -> list[Section]:
        claims = [[show_holds(one.holds), one.text, one.outcome] for one in self.claims]
        plots = [figure(to_svg(plot.figure), plot.caption) for plot in self.plots.values()]
        return [
            Section("", cards({"claims that hold": f"{self.num_held} of {len(self.claims)}"})),
            Section("Experiment", paragraph(description)),
            Section("Claims", table(["holds", "claim", "outcome"], claims)),
            Section("Plots", join(*plots)),
            *(
                Section(heading, table(*as_rows(rows), float_format=FLOAT_FORMAT))
                for heading, rows in self.tables.items()
            ),
            Section("Provenance", facts(provenance)),
        ]


def as_rows(rows: Table) -> tuple[list[str], list[list[float | str]]]:
    """Return the heads and the rows of a table, with large numbers as whole numbers."""
    columns = list(next(iter(rows.values())))
    return ["", *columns], [
        [name, *(_round_large(row[column]) for column in columns)] for name, row in rows.items()
    ]


def _round_large(value: float | str) -> float | str:
    if isinstance(value, float) and math.isfinite(value) and abs(value) >= LARGE:
        return round(value)
    return value


def show_holds(holds: bool) -> str:
    """Return the word for a claim that holds or does not."""
    return "yes" if holds else "no"
