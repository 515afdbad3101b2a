"""`regard reduce`: what codes keep in two dimensions, beside principal components."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, OneRun
from regard.cli.output import print_results


def reduce(
    run: OneRun,
    data: Annotated[
        str, Argument(help="Labelled data: a file, a folder per label, or a data set (test part).")
    ],
    out: Annotated[Path | None, Option(help="A file: .svg, .png, .html or .json.")] = None,
    device: Device = "auto",
) -> None:
    """Bring labelled items to two numbers: an autoencoder's codes, and principal components.

    Told are how often the 15 nearest neighbours of a dot have its label, and what two numbers lose.
    """
    from regard.core.files import check_suffix, write_json
    from regard.plots.figure import save
    from regard.runs.folder import describe_provenance
    from regard.studies import reduction
    from regard.studies.autoencoder import Subject

    if out is not None:
        check_suffix(out, "--out", ".svg", ".png", ".html", ".json")
    subject = Subject(run, device)
    found = reduction.reduce(subject, data)
    for name, plane in found.planes.items():
        print_results(filter(None, (plane.accuracy, plane.error)), title=name)
    if out is None:
        return
    if out.suffix == ".json":
        write_json(out, {**describe_provenance(subject.task.device), **found.to_dict()})
    else:
        save(out, found.draw(), title=f"{data} in two dimensions")
    print(out)
