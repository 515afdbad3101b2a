"""`regard ladder`: from a fixed context to self-attention on one data set, and the comparison."""

from pathlib import Path
from typing import Annotated

from typer import Option

from regard.cli.analysis.compare import report
from regard.cli.arguments import split_arguments
from regard.cli.options import DataAndOverrides, Device, RunFolders, Test, Valid
from regard.cli.output import stop


def ladder(
    data: DataAndOverrides,
    valid: Valid = None,
    test: Test = None,
    out: RunFolders = Path("runs/ladder"),
    only: Annotated[str, Option(help="Names of models, separated by commas.")] = "",
    device: Device = "auto",
) -> None:
    """Train sutskever2014, cho2014, bahdanau2015, luong2015, gehring2017, vaswani2017, prefix-lm.

    With a GPU in full size, else in a size for a laptop; settings hold for every rung. Finished
    rungs are skipped. The comparison is left in the folder as comparison.html and comparison.json.
    """
    from regard.runs.request import Request
    from regard.studies.compare.comparison import compare
    from regard.studies.ladder import climb

    paths, settings = split_arguments(data, max_paths=2)
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
        stop("The same command goes on.")
    comparison = compare(folders, device=device)
    report(comparison, as_json=str(out / "comparison.json"), html=out / "comparison.html")
