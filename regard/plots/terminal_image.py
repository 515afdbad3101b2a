"""Images for the terminal: two pixels a cell in colour, or shades where there is no colour."""

import shutil
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from regard.plots.grid import MARKS, Tile
from regard.plots.labels import clean, shorten
from regard.plots.pixels import Pixels, check_image, fit

WIDTH = 30
"""Cells of an image, where there is room."""

_GAP = 2
_SHADES = " ░▒▓█"

Draw = Callable[[ArrayLike, int], list[Text]]
"""An image and the cells of its longest side → its lines."""


def half_blocks(image: ArrayLike, width: int = WIDTH) -> list[Text]:
    """Draw an image in colour, two pixels above each other in a cell.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; bytes.
        width: Cells of its longest side.
    """
    return _colour(_shrink(image, width))


def _colour(pixels: Pixels) -> list[Text]:
    lines = []
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        line = Text(no_wrap=True)
        for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
            line.append("▀", Style.from_color(Color.from_rgb(*above), Color.from_rgb(*below)))
        lines.append(line)
    return lines


def shades(image: ArrayLike, width: int = WIDTH) -> list[Text]:
    """Draw an image in blocks, the brighter the denser.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; bytes.
        width: Cells of its longest side.
    """
    return _shade(_shrink(image, width))


def _shade(pixels: Pixels) -> list[Text]:
    grey = pixels.mean(-1)  # (Y, X)
    cells = (grey[::2] + grey[1::2]) / 2
    steps = (cells / 256 * len(_SHADES)).astype(int)
    return [Text("".join(_SHADES[step] for step in row), no_wrap=True) for row in steps]


def stretch(image: ArrayLike, width: int, height: int, *, has_colour: bool = True) -> list[Text]:
    """Draw an image stretched to so many cells and lines, as of something over time.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; bytes.
        width: Cells of a line.
        height: Lines.
        has_colour: Whether the terminal has.
    """
    size = (width, 2 * height)
    pixels = np.asarray(Image.fromarray(check_image(image)).resize(size, Image.Resampling.BOX))
    return _colour(pixels) if has_colour else _shade(pixels)


def mosaic(tiles: Sequence[Tile], *, draw: Draw = half_blocks, width: int | None = None) -> Text:
    """Draw tiles side by side, as many as fit into a line, with their words below.

    Args:
        tiles: What is drawn, without its boxes.
        draw: `half_blocks`, or `shades` where there is no colour.
        width: Cells of a line; the terminal's own width if not given.
    """
    room = width or shutil.get_terminal_size((100, 24)).columns
    cell = min(WIDTH, room)
    per_row = (room + _GAP) // (cell + _GAP)
    lines = []
    for start in range(0, len(tiles), per_row):
        row = [_words_below(tile, draw(tile.image, cell), cell) for tile in tiles[start:][:per_row]]
        tallest = max(len(image) for image, _ in row)
        columns = [[*image, *[Text()] * (tallest - len(image)), *words] for image, words in row]
        for parts in zip(*columns, strict=True):
            for part in parts[:-1]:
                part.pad_right(cell + _GAP - part.cell_len)
            lines.append(Text().join(parts))
        lines.append(Text())
    return Text("\n", no_wrap=True, overflow="ignore").join(lines)


def _words_below(tile: Tile, image: list[Text], width: int) -> tuple[list[Text], list[Text]]:
    caption = shorten(clean(MARKS[tile.is_right] + tile.caption), width)
    return image, [Text(caption), Text(shorten(clean(tile.note), width), "dim")]


def _shrink(image: ArrayLike, longest: int) -> Pixels:
    """Bring an image to (2Y, X, 3): pixels are as wide as high, and two make a cell."""
    pixels = check_image(image)
    height, width = pixels.shape[:2]
    scale = longest / max(height, width)
    size = (max(1, round(width * scale)), 2 * max(1, round(height * scale / 2)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))


if __name__ == "__main__":
    rows, columns = np.mgrid[0:48, 0:48]
    sky = np.stack([rows * 4, columns * 4, 255 - rows], axis=-1).astype(np.uint8)
    Console().print(mosaic([Tile(fit(sky), "sky"), Tile(fit(sky[::-1]), "sky, upside down")]))
