"""`regard reproduce`: reproduce a known experiment and check its results."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from regard.cli.completion import complete_experiment
from regard.cli.options import OUT, Seed
from regard.cli.output import print_table


def reproduce(
    name: Annotated[
        str,
        Argument(
            metavar="NAME",
            help="nadaraya-watson, show-attend-tell or sentence-vectors.",
            autocompletion=complete_experiment,
        ),
    ],
    out: Annotated[Path | None, Option(*OUT, help="A folder; runs/NAME if not given.")] = None,
    seed: Seed = 1,
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
