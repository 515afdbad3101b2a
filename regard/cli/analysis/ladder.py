"""`regard ladder`: from a fixed context to self-attention on one data set, and the comparison."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.analysis.compare import report
from regard.cli.arguments import split_words
from regard.cli.options import DataAndSettings, Device, Test, Valid


def ladder(
    data: DataAndSettings,
    valid: Valid = None,
    test: Test = None,
    out: Annotated[Path, typer.Option(help="The folder of the run folders.")] = Path("runs/ladder"),
    only: Annotated[str, typer.Option(help="Names of rungs, separated by commas.")] = "",
    device: Device = "auto",
) -> None:
    """Train sutskever2014, cho2014, bahdanau2015, luong2015, gehring2017, vaswani2017, prefix-lm.

    With a GPU in full size, else in a size for a laptop; settings hold for every rung. Finished
    rungs are skipped. The comparison is left in the folder as comparison.html and comparison.json.
    """
    from regard.core.logging import logger
    from regard.runs.request import Request
    from regard.studies.compare.comparison import compare
    from regard.studies.ladder import climb

    paths, settings = split_words(data, most_paths=2)
    request = Request(
        data=tuple(paths),
        valid=tuple(valid or ()),
        test=tuple(test or ()),
        settings=tuple(settings),
        out=out,
        device=device,
    )
    folders = climb(request, only=[name.strip() for name in only.split(",") if name.strip()])
    if folders is None:
        logger.info("Stopped; nothing is lost. The same command goes on.")
        raise typer.Exit(130)
    comparison = compare(folders, device=device)
    report(comparison, as_json=str(out / "comparison.json"), html=out / "comparison.html")
