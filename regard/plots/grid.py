"""Grids of images with captions below and boxes over them."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike
from rich.cells import cell_len

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.plots.figure import COLOURS, colour, style, to_svg
from regard.plots.inputs import KEPT, Pixels, check_image, clean, fit

COLUMNS = 5
"""Images of a row: as many as fit on a page."""

RIGHT, WRONG = COLOURS[0], COLOURS[1]
"""Blue and orange, distinct for colour-blind readers; a mark repeats the meaning."""

MARKS = {True: "✓ ", False: "✗ ", None: ""}
"""Mark before the caption of a right prediction, a wrong one, and of any other image."""

_FRAMES = {True: RIGHT, False: WRONG, None: "#8a949e"}
_DPI = 100
# In pixels at these dots per inch.
_SIDE, _GAP, _LINE, _NOTE_LINE = KEPT, 16, 17, 14
_LETTER, _NOTE_LETTER = 7.2, 5.9
_MOST_LINES = 4


@dataclass(frozen=True)
class Box:
    """A rectangle around something; its edges are shares of the image's width and height."""

    left: float
    """0 to 1."""
    top: float
    """0 to 1."""
    right: float
    """0 to 1, beyond `left`."""
    bottom: float
    """0 to 1, beyond `top`."""
    label: str = ""
    """What it is."""


@dataclass(frozen=True)
class Tile:
    """An image and its captions."""

    image: Pixels
    """(Y, X, 3)."""
    caption: str = ""
    """Text below it."""
    note: str = ""
    """Smaller text below the caption."""
    is_right: bool | None = None
    """Whether a prediction is right, shown by frame and mark; absent if there is none."""
    boxes: tuple[Box, ...] = ()
    """Rectangles over it."""


def contact_sheet(
    images: Sequence[ArrayLike], answers: Sequence[str], right: Sequence[str]
) -> list[Tile]:
    """Return images with the predicted label and, where that is wrong, the right one.

    Args:
        images: (Y, X, 3) each, or (Y, X) in grey; bytes.
        answers: A label for each.
        right: The label each should have.
    """
    if not len(images) == len(answers) == len(right):
        raise DataError(
            "There must be an answer and a right label for each image, but there are "
            f"{len(images)} images, {len(answers)} answers and {len(right)} labels."
        )
    return [
        Tile(
            fit(check_image(image)),
            caption=answer,
            note="" if answer == label else f"right: {label}",
            is_right=answer == label,
        )
        for image, answer, label in zip(images, answers, right, strict=True)
    ]


def sheet(
    tiles: Sequence[Tile],
    *,
    columns: int = COLUMNS,
    title: str = "",
    legend: Mapping[str, str] | None = None,
) -> Figure:
    """Plot tiles row by row.

    Args:
        tiles: Images with captions.
        columns: Images per row.
        title: A line above.
        legend: What colours mean: colour by name.
    """
    at_least("columns", columns, 1)
    if not tiles:
        raise DataError("There is nothing to draw: `tiles` must hold at least one image.")
    rows = [tiles[start : start + columns] for start in range(0, len(tiles), columns)]
    heights = [max(map(_height, row)) + _GAP for row in rows]
    width = max(len(rows[0]) * (_SIDE + _GAP) - _GAP, round(9 * cell_len(title)))
    top = 34 if title else 2
    height = top + sum(heights) + (_LINE if legend else 0)
    with style():
        canvas = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
        axes = canvas.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        if title:
            axes.text(0, 16, clean(title), fontsize=11, fontweight="bold")
        for row, y in zip(rows, np.cumsum([top, *heights]), strict=False):
            for column, tile in enumerate(row):
                _draw(axes, tile, x=column * (_SIDE + _GAP), y=int(y))
        _draw_legend(axes, legend or {}, height - 4)
        axes.set(xlim=(0, width), ylim=(height, 0))
    return canvas


def _size(tile: Tile) -> tuple[int, int]:
    """Return width and height on the sheet."""
    height, width = tile.image.shape[:2]
    scale = _SIDE / max(height, width)
    return max(1, round(width * scale)), max(1, round(height * scale))


def _height(tile: Tile) -> int:
    *_, (bottom, _, _) = [(_size(tile)[1], "", False), *_lines(tile)]
    return bottom


def _lines(tile: Tile) -> Iterator[tuple[int, str, bool]]:
    """Yield the foot of each line of words below the tile's top, the line, and if it is quiet."""
    below = _size(tile)[1] + 2
    for line in _wrap(MARKS[tile.is_right] + tile.caption, _LETTER):
        below += _LINE
        yield below, line, False
    for line in _wrap(tile.note, _NOTE_LETTER):
        below += _NOTE_LINE
        yield below, line, True


def _wrap(text: str, letter_width: float) -> list[str]:
    text = clean(text).strip()
    # Wide letters fill a line with fewer of them.
    share = len(text) / max(1, cell_len(text))
    per_line = max(4, int(_SIDE / letter_width * share))
    return textwrap.wrap(text, per_line, max_lines=_MOST_LINES, placeholder=" …")


def _draw(axes: Axes, tile: Tile, *, x: int, y: int) -> None:
    width, height = _size(tile)
    # The file holds the pixels as they are: nothing is smoothed anew.
    edges = (x, x + width, y + height, y)
    axes.imshow(tile.image, extent=edges, interpolation="none", aspect="auto")
    thickness = 0.6 if tile.is_right is None else 2.4
    _outline(axes, (x, y, width, height), shade=_FRAMES[tile.is_right], thickness=thickness)
    for number, box in enumerate(tile.boxes):
        shade = colour(number + 1)
        left, top = x + width * box.left, y + height * box.top
        bounds = (left, top, width * (box.right - box.left), height * (box.bottom - box.top))
        # A dark rim, so that the box is seen on any ground.
        _outline(axes, bounds, shade="#000000", thickness=2.6)
        _outline(axes, bounds, shade=shade, thickness=1.6)
        if box.label:
            tag = {"facecolor": shade, "edgecolor": "none", "pad": 1.2}
            axes.text(left, top, clean(box.label), fontsize=7, color="white", va="bottom", bbox=tag)
    for below, line, is_quiet in _lines(tile):
        size, strength = (7.5, 0.7) if is_quiet else (9.4, 1.0)
        axes.text(x, y + below - 3, line, fontsize=size, alpha=strength)


def _outline(
    axes: Axes, bounds: tuple[float, float, float, float], *, shade: str, thickness: float
) -> None:
    x, y, width, height = bounds
    frame = Rectangle((x, y), width, height, fill=False, edgecolor=shade, linewidth=thickness)
    # Half of a line at the edge of the sheet lies beyond it.
    frame.set_clip_on(False)
    axes.add_patch(frame)


def _draw_legend(axes: Axes, legend: Mapping[str, str], y: float) -> None:
    x = 0.0
    for name, shade in legend.items():
        axes.add_patch(Rectangle((x, y - 9), 10, 10, facecolor=shade, edgecolor="none"))
        axes.text(x + 15, y, clean(name), fontsize=8)
        x += 30 + _NOTE_LETTER * 1.05 * cell_len(clean(name))


if __name__ == "__main__":
    shades = [np.full((8, 8), shade, dtype=np.uint8) for shade in (40, 120, 230)]
    found = contact_sheet(shades, ["black", "grey", "grey"], ["black", "grey", "white"])
    print(to_svg(sheet(found, title="Two of three")))
