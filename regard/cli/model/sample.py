"""`regard sample`: what a variational autoencoder makes up."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, OneRun, Picture, SearchWords


def sample(
    run: OneRun,
    words: SearchWords = None,
    num: Annotated[int, typer.Option("--num", "-n", help="How many.")] = 10,
    seed: Annotated[int, typer.Option(help="Another seed makes up others.")] = 0,
    out: Picture = None,
    device: Device = "auto",
) -> None:
    """Draw codes and write what they stand for: texts, a line each, or a sheet of images."""
    from regard.runs.folder import load_one
    from regard.studies.codes import check_picture, draw_sheet, write_codes
    from regard.tasks.latents import sample_latents

    task = load_one(run, device)
    codes = sample_latents(task, num, seed=seed)
    check_picture(task, out, num)
    found = write_codes(task, codes, words or [])
    if isinstance(found, list):
        print(*found, sep="\n")
    else:
        print(draw_sheet(out or Path("samples.svg"), found, title=f"Made up by {Path(run).name}"))
