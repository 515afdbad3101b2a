"""`regard train`: train a model and write a run folder."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from regard.cli.arguments import split_training_arguments
from regard.cli.options import (
    Columns,
    DataAndOverrides,
    Device,
    Force,
    Json,
    OnError,
    Recipe,
    RecipeSeed,
    RunFolder,
    Test,
    Valid,
)
from regard.cli.output import print_json, print_results, stop

if TYPE_CHECKING:
    from regard.runs.request import Request


def train(
    data: DataAndOverrides,
    valid: Valid = None,
    test: Test = None,
    recipe: Recipe = None,
    metric: Annotated[str | None, Option(help="Validation metric, such as bleu.")] = None,
    columns: Columns = None,
    on_error: OnError = None,
    out: RunFolder = None,
    as_json: Json = False,
    seed: RecipeSeed = None,
    device: Device = "auto",
    resume: Annotated[bool, Option("--resume", help="Resume the run in --out.")] = False,
    force: Force = False,
    tensorboard: Annotated[
        bool,
        Option("--tensorboard", help="Write curves for TensorBoard to the run folder."),
    ] = False,
) -> None:
    """Train a model on pairs and evaluate it on held-out ones."""
    from regard.core.logging import is_first_process
    from regard.core.tables import pick
    from regard.data.text.readers import ON_ERROR
    from regard.runs import train as training
    from regard.runs.folder import TENSORBOARD
    from regard.runs.request import Request
    from regard.training.loggers.tensorboard import TensorBoardLogger

    paths, settings = split_training_arguments(data, columns=columns, seed=seed)
    if on_error is not None:
        settings.append(f"data.on_error={pick(ON_ERROR, on_error, '--on-error')}")
    request = Request(
        data=tuple(paths),
        valid=tuple(valid or ()),
        test=tuple(test or ()),
        recipe=recipe,
        metric=metric,
        settings=tuple(settings),
        out=out or Path("runs") / _folder_name(paths, recipe),
        device=device,
        is_resumed=resume,
        is_forced=force,
    )
    loggers = [TensorBoardLogger(request.out / TENSORBOARD)] if tensorboard else []
    result = training.train(request, loggers=loggers)
    if not is_first_process():
        return
    if result.evaluation is None:
        stop(f"Resume with: {_resume_command(request, tensorboard)}")
    if as_json:
        print_json({"run": str(request.out), **result.evaluation.to_dict()})
        return
    print_results(result.evaluation.results.values())
    print(f"Run folder: {request.out}")
    if result.report is not None:
        print(f"Report: {result.report}")


def _resume_command(request: "Request", tensorboard: bool) -> str:
    """Return the command that resumes a run: data and folder; the rest is in the folder."""
    arguments = ["regard", "train", *request.data]
    for path in request.valid:
        arguments += ["--valid", path]
    for path in request.test:
        arguments += ["--test", path]
    arguments += ["--out", str(request.out), "--resume"]
    return shlex.join([*arguments, "--tensorboard"] if tensorboard else arguments)


def _folder_name(paths: list[str], recipe: str | None) -> str:
    stem = Path(paths[0]).name.split(".")[0].replace(":", "-") or "run"
    return f"{stem}-{Path(recipe).stem}" if recipe else stem
