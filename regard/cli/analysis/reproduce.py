"""`regard reproduce`: run experiments of the lectures and check their claims."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from regard.cli.completion import complete_experiment
from regard.cli.options import OUT, Seed
from regard.cli.output import print_table
from regard.core.errors import ConfigError

if TYPE_CHECKING:
    from regard.studies.reproduce.findings import Findings


def reproduce(
    name: Annotated[
        str | None,
        Argument(
            metavar="[NAME]",
            help="An experiment, such as nadaraya-watson.",
            autocompletion=complete_experiment,
            show_default=False,
        ),
    ] = None,
    is_list: Annotated[bool, Option("--list", help="List the experiments.")] = False,
    is_all: Annotated[bool, Option("--all", help="Run all experiments.")] = False,
    out: Annotated[
        Path | None, Option(*OUT, help="A folder; runs/NAME or runs/gallery if not given.")
    ] = None,
    seed: Seed = 1,
) -> None:
    """Run an experiment of the lectures and check its claims.

    An experiment takes seconds to minutes and needs no data. Its page shows what is claimed, what
    came out, whether it holds, and plots. With --all, an index page links to all of them. The exit
    code is 1 if a claim does not hold.
    """
    from regard.studies.reproduce import gallery, running
    from regard.studies.reproduce.findings import REPORT

    if (name is not None) + is_list + is_all != 1:
        raise ConfigError(
            "Give the name of one experiment, --all or --list. `regard reproduce --list` "
            "shows the names."
        )
    if is_list:
        _print_list()
        return
    if is_all:
        folder = out or Path("runs/gallery")
        outcomes = gallery.reproduce_all(folder, seed=seed)
        rows = [[outcome.experiment.name, outcome.note] for outcome in outcomes]
        print_table(["experiment", "result"], rows)
        print(f"\n{folder / gallery.INDEX}")
        is_as_expected = all(outcome.is_as_expected for outcome in outcomes)
    else:
        assert name is not None
        folder = out or Path("runs") / name
        findings = running.reproduce(name, folder, seed=seed)
        _print_findings(findings)
        print(f"\n{folder / REPORT}")
        is_as_expected = findings.is_as_expected
    if not is_as_expected:
        raise Exit(1)


def _print_list() -> None:
    from regard.studies.reproduce.catalog import CHAPTERS, experiments

    width = max(map(len, experiments()))
    for chapter, title in CHAPTERS.items():
        print(f"{title}")
        for name, experiment in experiments().items():
            if experiment.chapter == chapter:
                print(f"  {name:<{width}}  {experiment.seconds:>4.0f} s  {experiment.summary}")


def _print_findings(findings: "Findings") -> None:
    from regard.studies.reproduce.findings import FLOAT_FORMAT, as_rows

    for heading, table in findings.tables.items():
        head, rows = as_rows(table)
        shown = [
            [format(cell, FLOAT_FORMAT) if isinstance(cell, float) else str(cell) for cell in row]
            for row in rows
        ]
        print_table(head, shown, title=heading)
        print()
    for claim in findings.claims:
        print(f"{'yes' if claim.holds else 'NO':<3}  {claim.text}\n     {claim.outcome}")
