"""`regard interpolate`: what lies between two texts or two images."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, OneRun, Picture, SearchWords

MOST_COLUMNS = 12
"""Images of a row; a longer walk goes on in the next one."""


def interpolate(
    run: OneRun,
    first: Annotated[str, typer.Argument(help="A text, or an image's file.")],
    last: Annotated[str, typer.Argument(help="Another one.")],
    words: SearchWords = None,
    steps: Annotated[int, typer.Option(help="How many, both ends included.")] = 7,
    out: Picture = None,
    device: Device = "auto",
) -> None:
    """Walk in a straight line from one code to another: texts, a line each, or a strip of images.

    The ends are what the model makes of the two given.
    """
    from regard.core.errors import ConfigError
    from regard.runs.folder import load_one
    from regard.studies.codes import check_picture, draw_sheet, write_codes
    from regard.tasks.latents import check_autoencoder, interpolate

    if not first.strip() or not last.strip():
        raise ConfigError("Both ends must have at least one word, but one is empty.")
    task = load_one(run, device)
    check_autoencoder(task)
    check_picture(task, out, steps)
    ends = task.encode([first, last])
    found = write_codes(task, interpolate(ends[0], ends[1], steps), words or [])
    if isinstance(found, list):
        print(*found, sep="\n")
    else:
        title = f"From {first} to {last}"
        print(
            draw_sheet(
                out or Path("between.svg"), found, title=title, columns=min(steps, MOST_COLUMNS)
            )
        )
