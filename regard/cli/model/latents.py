"""`regard sample` and `regard interpolate`: decode latents of an autoencoder."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.arguments import search_overrides
from regard.cli.options import OUT, Beam, Device, OneRun, SearchOverrides, Seed
from regard.cli.output import output_to

LatentFile = Annotated[
    Path | None,
    Option(*OUT, help="A file for the texts, or for the images: .png, .svg, .pdf or .html."),
]


def sample(
    run: OneRun,
    overrides: SearchOverrides = None,
    num: Annotated[int, Option("--num", "-n", help="Number of samples.")] = 10,
    beam: Beam = None,
    out: LatentFile = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Sample latents and decode them.

    Texts are printed, one per line; images are saved on a sheet.
    """
    from regard.runs.folder import load_one
    from regard.studies.latents import LatentDecoder

    overrides = search_overrides(overrides, beam=beam)
    decoder = LatentDecoder(load_one(run, device), overrides, out)
    with output_to(decoder.text_file):
        print(*decoder.sample(num, seed=seed, name=Path(run).name), sep="\n")


def interpolate(
    run: OneRun,
    first: Annotated[str, Argument(metavar="FIRST", help="A text or an image file.")],
    last: Annotated[str, Argument(metavar="LAST", help="Another one.")],
    overrides: SearchOverrides = None,
    steps: Annotated[int, Option(help="Number of points, including both ends.")] = 7,
    beam: Beam = None,
    out: LatentFile = None,
    device: Device = "auto",
) -> None:
    """Interpolate linearly between two latents and decode them.

    Texts are printed, one per line; images are saved on a sheet. The ends are the reconstructions
    of the two sources.
    """
    from regard.runs.folder import load_one
    from regard.studies.latents import LatentDecoder

    overrides = search_overrides(overrides, beam=beam)
    decoder = LatentDecoder(load_one(run, device), overrides, out)
    with output_to(decoder.text_file):
        print(*decoder.interpolate(first, last, num=steps), sep="\n")
