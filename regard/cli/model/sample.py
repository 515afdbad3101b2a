"""`regard sample`: what a variational autoencoder makes up."""

from pathlib import Path
from typing import Annotated

from typer import Option

from regard.cli.options import Device, OneRun, Plot, SearchOverrides


def sample(
    run: OneRun,
    words: SearchOverrides = None,
    num: Annotated[int, Option("--num", "-n", help="How many.")] = 10,
    seed: Annotated[int, Option(help="Seed of the samples.")] = 0,
    out: Plot = None,
    device: Device = "auto",
) -> None:
    """Draw codes and write what they stand for: texts, a line each, or a sheet of images."""
    from regard.runs.folder import load_one
    from regard.studies.latents import LatentDecoder

    decoder = LatentDecoder(load_one(run, device), words or (), out)
    print(*decoder.sample(num, seed=seed, name=Path(run).name), sep="\n")
