"""`regard reduce`: latents of an autoencoder in two dimensions, compared with PCA."""

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
    """Reduce labelled items to two dimensions.

    Latents of an autoencoder are compared with PCA, by the accuracy of the labels of the 15 nearest
    neighbours and by the reconstruction error of images.
    """
    from regard.core.files import check_suffix, write_json
    from regard.plots.figure import save
    from regard.runs.folder import describe_provenance
    from regard.studies import reduction
    from regard.studies.autoencoder import AutoencoderRun

    if out is not None:
        check_suffix(out, "--out", ".svg", ".png", ".html", ".json")
    autoencoder = AutoencoderRun(run, device)
    result = reduction.reduce(autoencoder, data)
    for name, projection in result.projections.items():
        print_results(filter(None, (projection.accuracy, projection.error)), title=name)
    if out is None:
        return
    if out.suffix == ".json":
        write_json(out, {**describe_provenance(autoencoder.task.device), **result.to_dict()})
    else:
        save(out, result.plot(), title=f"{data} in two dimensions")
    print(out)
