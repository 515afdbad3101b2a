"""`regard ladder`: train the baseline models on one data set and compare them."""

from pathlib import Path
from typing import Annotated

from typer import Option

from regard.cli.analysis.compare import report
from regard.cli.arguments import split_training_arguments
from regard.cli.options import (
    Columns,
    DataAndOverrides,
    Device,
    Json,
    RecipeSeed,
    RunFolders,
    Test,
    Valid,
)
from regard.cli.output import stop


def ladder(
    data: DataAndOverrides,
    valid: Valid = None,
    test: Test = None,
    columns: Columns = None,
    out: RunFolders = Path("runs/ladder"),
    only: Annotated[str, Option(help="Names of models, separated by commas.")] = "",
    as_json: Json = False,
    seed: RecipeSeed = None,
    device: Device = "auto",
) -> None:
    """Train the baseline models on one data set and compare them.

    The models are sutskever2014, cho2014, bahdanau2015, luong2015, gehring2017, vaswani2017 and
    prefix-lm, in full size with a GPU and in a small size without. Settings apply to every model.
    Finished models are skipped. The comparison is written to comparison.html and comparison.json
    in the folder.
    """
    from regard.runs.request import Request
    from regard.studies.compare.comparison import compare
    from regard.studies.ladder import train_ladder

    paths, settings = split_training_arguments(data, columns=columns, seed=seed)
    request = Request(
        data=tuple(paths),
        valid=tuple(valid or ()),
        test=tuple(test or ()),
        settings=tuple(settings),
        out=out,
        device=device,
    )
    names = [name.strip() for name in only.split(",") if name.strip()]
    folders = train_ladder(request, only=names)
    if folders is None:
        stop("Run the same command to resume.")
    comparison = compare(folders, device=device)
    files = (out / "comparison.json", out / "comparison.html")
    report(comparison, files=files, as_json=as_json)
