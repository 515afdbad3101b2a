"""`regard interpolate`: what lies between two texts or two images."""

from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, OneRun, Plot, SearchOverrides


def interpolate(
    run: OneRun,
    first: Annotated[str, Argument(help="A text, or an image's file.")],
    last: Annotated[str, Argument(help="Another one.")],
    words: SearchOverrides = None,
    steps: Annotated[int, Option(help="How many, both ends included.")] = 7,
    out: Plot = None,
    device: Device = "auto",
) -> None:
    """Walk in a straight line from one code to another: texts, a line each, or a strip of images.

    The ends are what the model makes of the two given.
    """
    from regard.runs.folder import load_one
    from regard.studies.latents import LatentDecoder

    decoder = LatentDecoder(load_one(run, device), words or (), out)
    print(*decoder.interpolate(first, last, num=steps), sep="\n")
