"""What codes stand for, whatever they are codes of: lines of text, or images on a sheet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.core.errors import ConfigError
from regard.plots.figure import check_path, save
from regard.plots.grid import COLUMNS, Tile, sheet
from regard.plots.inputs import check_image, fit
from regard.tasks.autoencoding.task import AutoencodingTask
from regard.tasks.base import search_with
from regard.tasks.prediction import as_picture

MOST_IMAGES = 500
"""Images of a sheet; more would not be a picture that anybody looks at."""


def write_codes(task: Any, codes: Tensor, words: Sequence[str] = ()) -> list[str] | Tensor:
    """Return what codes (B, D) stand for: texts, or images (B, C, Y, X) in 8 bits.

    Args:
        task: An autoencoder.
        codes: Of its own, drawn or mixed.
        words: Changes of how texts are searched for, such as `search.temperature=0.8`.
    """
    # Of a task that does not search, this refuses words.
    search = search_with(task, beams=None, words=words)
    if isinstance(task, AutoencodingTask):
        return task.decode(codes, search=search)
    images: Tensor = task.decode(codes)
    return images


def check_picture(task: Any, path: Path | None, num: int) -> None:
    """Raise a `ConfigError` if a picture is asked for that cannot be drawn.

    Args:
        task: An autoencoder.
        path: Where the picture goes.
        num: How many codes there are.
    """
    if not isinstance(task, AutoencodingTask):
        if path is not None:
            check_path(path, "--out")
        if num > MOST_IMAGES:
            raise ConfigError(
                f"A sheet holds at most {MOST_IMAGES:,} images, but {num:,} are asked for. Ask for "
                "fewer."
            )
    elif path is not None:
        raise ConfigError(
            "`--out` is for codes that stand for images, but those of this run stand for texts, "
            f"which are printed. Leave it out, or end the line with `> {path}`."
        )


def draw_sheet(path: Path, images: Tensor, *, title: str, columns: int = COLUMNS) -> Path:
    """Draw images (B, C, Y, X) in 8 bits row by row, and save them as the file's name asks.

    Args:
        path: A file: `.png`, `.svg` or `.html`.
        images: What to draw.
        title: A line above.
        columns: Images of a row.
    """
    found = [Tile(fit(check_image(as_picture(pixels)))) for pixels in images]
    save(path, sheet(found, columns=columns, title=title), title=title)
    return path
