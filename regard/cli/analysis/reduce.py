"""`regard reduce`: what codes keep in two dimensions, beside principal components."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, OneRun


def reduce(
    run: OneRun,
    data: Annotated[
        str,
        typer.Argument(
            help="Labelled images or sentences: a data set's name (its test side), a folder with a "
            "folder for each label, a file."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="A file: .svg, .png, .html or .json with every dot.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Bring labelled items to two numbers: an autoencoder's codes, and principal components.

    Told are how often the 15 nearest neighbours of a dot have its label, and what two numbers lose.
    """
    from regard.core.errors import ConfigError
    from regard.core.files import write_json
    from regard.plots import figure
    from regard.runs.folder import describe_making
    from regard.studies import reduction
    from regard.studies.autoencoder import Subject

    if out is not None and out.suffix not in (".svg", ".png", ".html", ".json"):
        raise ConfigError(f"`--out` must end in .svg, .png, .html or .json, but is '{out}'.")
    subject = Subject(run, device)
    found = reduction.reduce(subject, data)
    for name, plane in found.planes.items():
        print(f"{name}:")
        for result in filter(None, (plane.accuracy, plane.error)):
            print(f"  {result}")
    if out is None:
        return
    if out.suffix == ".json":
        write_json(out, {**describe_making(subject.task.device), **found.to_dict()})
    else:
        figure.save(out, found.draw(), title=f"{data} in two dimensions")
    print(out)
