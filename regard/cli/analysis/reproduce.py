"""`regard reproduce`: reproduce a known experiment and check its results."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from regard.cli.output import print_table


def reproduce(
    name: Annotated[str, Argument(help="nadaraya-watson, show-attend-tell or sentence-vectors.")],
    out: Annotated[Path | None, Option(help="A folder; runs/NAME if not given.")] = None,
    seed: Annotated[int, Option(help="The random seed.")] = 1,
) -> None:
    """Reproduce a known experiment and check its results.

    The experiments are Nadaraya–Watson kernel regression (seconds), "Show, attend and tell" on
    rendered scenes, and sentence vectors of Sutskever et al. 2014 (minutes each). Plots and a
    report are written to a folder. The exit code is 1 if a result does not hold.
    """
    from regard.studies.reproduce import findings

    folder = out or Path("runs") / name
    results = findings.reproduce(name, folder, seed=seed)
    rows = [
        [name, *(f"{value:.3f}" for value in values.values())]
        for name, values in results.numbers.items()
    ]
    print_table(["", *results.metric_names], rows, title=results.title)
    print()
    for relation in results.relations:
        print(f"{'yes' if relation.holds else 'NO ':<3}  {relation.claim}")
    print(f"\n{folder / findings.REPORT}")
    if not results.is_as_expected:
        raise Exit(1)
