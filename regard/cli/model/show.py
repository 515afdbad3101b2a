"""`regard show`: where the model looks while it answers, in a sentence, an image or a recording."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import Device, Run

if TYPE_CHECKING:
    from regard.plots.grid import Tile


def show(
    run: Run,
    sentence: Annotated[
        str,
        typer.Argument(
            help="A source sentence; an image, a video or a recording: its file; or a text and an "
            "image, a tab between them."
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="A target to look at instead of the model's own.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A file: .png, .svg or .html.")] = None,
    device: Device = "auto",
) -> None:
    """Draw where the model looks in a sentence, an image or sound, in the terminal or a file.

    Of a model that answers with an image, what it read, what it drew and what is right are shown.
    """
    from rich.console import Console

    from regard.core.errors import ConfigError
    from regard.interpret.attention_tiles import hang, look_through, num_columns
    from regard.plots import heatmap, spectrogram, terminal
    from regard.runs.folder import load
    from regard.tasks.base import GeneratesImages
    from regard.tasks.generation.attention import spectrogram_of

    if not sentence.strip():
        raise ConfigError("The sentence must have at least one word, but is empty.")
    task = load(run, device)
    if isinstance(task, GeneratesImages):
        _show_tiles(hang(task.image_grid(sentence, target)), out, title=sentence)
        return
    example, written = task.example_to_show(sentence, target)
    (found,) = task.attend([example])
    if not found.weights.shape[0]:
        raise ConfigError(
            f"{run} holds a model without attention, so there is no map to show. "
            f"Its answer is '{written}'."
        )
    print(written)
    if found.kind != "attention":
        print(f"Shown: {found.kind}")
    seen = look_through(found)
    heard = spectrogram_of(found)
    words = found.words() if found.num_words and heard is None else None
    console = Console()
    if heard is not None and out is None:
        console.print(spectrogram.in_terminal(heard, has_colour=bool(console.color_system)))
    elif heard is not None and out is not None:
        spectrogram.save(out, heard, title=written)
        print(out)
    if words is not None:
        weights, (rows, columns) = words.mean().numpy(), words.labels
        if out is None:
            console.print(terminal.heatmap(weights, rows, columns))
        else:
            # Words and image are two pictures, and so two files.
            place = out.with_stem(f"{out.stem}-words") if seen else out
            heatmap.save(place, weights, rows, columns=columns)
            print(place)
    if seen:
        _show_tiles(seen, out, title=written, columns=num_columns(found))


def _show_tiles(
    shown: "list[Tile]", out: Path | None, *, title: str, columns: int | None = None
) -> None:
    """Draw images in the terminal or a file."""
    from rich.console import Console

    from regard.plots import figure, terminal
    from regard.plots import grid as tiles

    if out is None:
        console = Console()
        render = terminal.half_blocks if console.color_system else terminal.shades
        console.print(terminal.mosaic(shown, render=render, width=console.width))
        return
    drawn = tiles.sheet(shown, columns=columns or tiles.COLUMNS, title=title)
    figure.save(out, drawn, title=title)
    print(out)
