"""`regard reproduce`: an experiment of the lectures made again, with its numbers and pictures."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from regard.cli.output import print_table


def reproduce(
    name: Annotated[str, Argument(help="nadaraya-watson, show-attend-tell or sentence-vectors.")],
    out: Annotated[Path | None, Option(help="A folder; runs/NAME if not given.")] = None,
    seed: Annotated[int, Option(help="The random seed.")] = 1,
) -> None:
    """Make an experiment again and say whether what it is known for can be seen.

    The exit code is 1 if it cannot.
    """
    from regard.studies.reproduce.findings import REPORT
    from regard.studies.reproduce.findings import reproduce as make

    folder = out or Path("runs") / name
    findings = make(name, folder, seed=seed)
    rows = [
        [name, *(f"{value:.3f}" for value in values.values())]
        for name, values in findings.numbers.items()
    ]
    print_table(["", *findings.measures], rows, title=findings.title)
    print()
    for relation in findings.relations:
        print(f"{'yes' if relation.holds else 'NO ':<3}  {relation.claim}")
    print(f"\n{folder / REPORT}")
    if not findings.is_as_expected:
        raise Exit(1)
