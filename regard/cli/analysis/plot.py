"""`regard plot`: training curves of runs in one figure."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.completion import complete_run
from regard.cli.options import OUT

X_AXES = {"step": None, "seconds": None}
"""Fields of the training log for the x axis."""


def plot(
    run: Annotated[
        list[Path],
        Argument(metavar="RUN...", help="Run folders.", autocompletion=complete_run),
    ],
    out: Annotated[Path, Option(*OUT, help="The file: .png, .svg, .pdf or .html.")] = Path(
        "curves.svg"
    ),
    x: Annotated[str, Option("--x", metavar="step|seconds", help="The x axis.")] = "step",
) -> None:
    """Plot loss, validation score, learning rate and throughput of runs in one figure.

    Runs may be unfinished; their curves end at the last row of the training log.
    """
    from regard.core.tables import pick
    from regard.plots.figure import check_path, save
    from regard.runs.training_logs import plot_runs

    check_path(out, "--out")
    pick(X_AXES, x, "--x")
    save(out, plot_runs(run, x=x), title="Training curves")
    print(out)
