"""`regard sample` and `regard interpolate`: decode latents of an autoencoder."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, OneRun, Plot, SearchOverrides


def sample(
    run: OneRun,
    overrides: SearchOverrides = None,
    num: Annotated[int, Option("--num", "-n", help="Number of samples.")] = 10,
    seed: Annotated[int, Option(help="Seed of the samples.")] = 0,
    out: Plot = None,
    device: Device = "auto",
) -> None:
    """Sample latents and decode them.

    Texts are printed, one per line; images are saved on a sheet.
    """
    from regard.runs.folder import load_one
    from regard.studies.latents import LatentDecoder

    decoder = LatentDecoder(load_one(run, device), overrides or (), out)
    print(*decoder.sample(num, seed=seed, name=Path(run).name), sep="\n")


def interpolate(
    run: OneRun,
    first: Annotated[str, Argument(help="A text or an image file.")],
    last: Annotated[str, Argument(help="Another one.")],
    overrides: SearchOverrides = None,
    steps: Annotated[int, Option(help="Number of points, including both ends.")] = 7,
    out: Plot = None,
    device: Device = "auto",
) -> None:
    """Interpolate linearly between two latents and decode them.

    Texts are printed, one per line; images are saved on a sheet. The ends are the reconstructions
    of the two sources.
    """
    from regard.runs.folder import load_one
    from regard.studies.latents import LatentDecoder

    decoder = LatentDecoder(load_one(run, device), overrides or (), out)
    print(*decoder.interpolate(first, last, num=steps), sep="\n")
