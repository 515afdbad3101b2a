"""`regard reproduce`: an experiment of the lectures made again, with its numbers and pictures."""

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="The experiment: nadaraya-watson, show-attend-tell or sentence-vectors."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where its files go; runs/NAME if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="What its chance starts from.")] = 1,
) -> None:
    """Make an experiment again and say whether what it is known for can be seen.

    The exit code is 1 if it cannot.
    """
    from rich.console import Console
    from rich.table import Table

    from regard.studies.reproduce.experiments import reproduce as make
    from regard.studies.reproduce.findings import REPORT

    folder = out or Path("runs") / name
    findings = make(name, folder, seed=seed)
    table = Table(title=findings.title, title_justify="left", box=None)
    table.add_column()
    for measure in findings.measures:
        table.add_column(measure, justify="right")
    for row, values in findings.numbers.items():
        table.add_row(row, *(f"{value:.3f}" for value in values.values()))
    Console().print(table)
    print()
    for relation in findings.relations:
        print(f"{'yes' if relation.holds else 'NO ':<3}  {relation.claim}")
    print(f"\n{folder / REPORT}")
    if not findings.is_as_expected:
        raise typer.Exit(1)
