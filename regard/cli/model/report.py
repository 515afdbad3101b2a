"""`regard report`: HTML report of a trained run."""

from pathlib import Path
from typing import Annotated

from typer import Option

from regard.cli.options import OUT, Device, OneRun


def report(
    run: OneRun,
    out: Annotated[
        Path | None, Option(*OUT, help="The page; report.html in the run folder if not given.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Write the report of a run again: scores, training curves, samples, attention weights.

    Scores and predictions are those of the end of the training.
    """
    from regard.core.files import check_suffix
    from regard.runs.folder import load_one
    from regard.runs.report import read_evaluation, write_report

    if out is not None:
        check_suffix(out, "--out", ".html")
    folder, task = Path(run), load_one(run, device)
    evaluation, examples = read_evaluation(folder, task)
    print(f"Report: {write_report(folder, task, evaluation, examples=examples, path=out)}")
