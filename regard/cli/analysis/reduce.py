"""`regard reduce`: latents of an autoencoder in two dimensions, compared with PCA."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.completion import complete_data
from regard.cli.options import OUT, Device, Json, OneRun
from regard.cli.output import print_json, print_results


def reduce(
    run: OneRun,
    data: Annotated[
        str,
        Argument(
            metavar="DATA",
            help="Labelled data: a file, a folder per label, or a data set (test part).",
            autocompletion=complete_data,
        ),
    ],
    as_json: Json = False,
    out: Annotated[
        Path | None, Option(*OUT, help="A file: .png, .svg, .pdf, .html or .json.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Reduce labelled items to two dimensions.

    Latents of an autoencoder are compared with PCA, by the accuracy of the labels of the 15 nearest
    neighbours and by the reconstruction error of images.
    """
    from regard.core.files import check_suffix, write_json
    from regard.plots.figure import SUFFIXES, save
    from regard.runs.provenance import describe_provenance
    from regard.studies import reduction
    from regard.studies.autoencoder import AutoencoderRun

    if out is not None:
        check_suffix(out, "--out", *SUFFIXES, ".json")
    autoencoder = AutoencoderRun(run, device)
    result = reduction.reduce(autoencoder, data)
    values = {**describe_provenance(autoencoder.task.device), **result.to_dict()}
    if out is not None and out.suffix.lower() == ".json":
        write_json(out, values)
    elif out is not None:
        save(out, result.plot(), title=f"{data} in two dimensions")
    if as_json:
        print_json(values)
        return
    for name, projection in result.projections.items():
        print_results(filter(None, (projection.accuracy, projection.error)), title=name)
    if out is not None:
        print(out)
