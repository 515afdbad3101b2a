"""Grids of images with captions and bounding boxes."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from rich.cells import cell_len

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, series_color, style, to_svg
from regard.plots.inputs import MAX_SIDE, Pixels, check_image, resize_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 5
"""Images per row that fit on a page."""

RIGHT, WRONG = COLORS[0], COLORS[1]
"""Blue and orange, distinct for colour-blind readers; a mark has the same meaning."""

MARKS = {True: "✓ ", False: "✗ ", None: ""}
"""Mark before the caption of a correct prediction, of a wrong one, and of other images."""

_FRAMES = {True: RIGHT, False: WRONG, None: "#8a949e"}
_DPI = 100
# In pixels at this resolution.
_MIN_SIDE, _SPACING, _LINE, _NOTE_LINE = 64, 16, 17, 14
_PAGE_WIDTH = COLUMNS * (MAX_SIDE + _SPACING) - _SPACING
_LETTER, _NOTE_LETTER = 7.2, 5.9
_MAX_LINES = 4


@dataclass(frozen=True)
class Box:
    """Bounding box, with edges relative to the width and height of the image."""

    left: float
    """0 to 1."""
    top: float
    """0 to 1."""
    right: float
    """0 to 1, greater than `left`."""
    bottom: float
    """0 to 1, greater than `top`."""
    label: str = ""
    """Text beside the box."""


@dataclass(frozen=True)
class Tile:
    """Image with captions and boxes."""

    image: Pixels
    """(Y, X, 3)."""
    caption: str = ""
    """Text below the image."""
    note: str = ""
    """Smaller text below the caption."""
    is_right: bool | None = None
    """Whether the prediction is correct, shown by frame and mark; None if there is none."""
    boxes: tuple[Box, ...] = ()
    """Bounding boxes over the image."""


def contact_sheet(
    images: Sequence[ArrayLike], predicted: Sequence[str], targets: Sequence[str]
) -> list[Tile]:
    """Return tiles with the predicted label and, if that is wrong, the true one.

    Args:
        images: (Y, X, 3) each, or (Y, X) in grey; uint8.
        predicted: Predicted label of each image.
        targets: True label of each image.
    """
    if not len(images) == len(predicted) == len(targets):
        raise DataError(
            "There must be a predicted and a true label for each image, but there are "
            f"{len(images)} images, {len(predicted)} predictions and {len(targets)} labels."
        )
    return [
        Tile(
            resize_image(check_image(image)),
            caption=prediction,
            note="" if prediction == label else f"right: {label}",
            is_right=prediction == label,
        )
        for image, prediction, label in zip(images, predicted, targets, strict=True)
    ]


def sheet(
    tiles: Sequence[Tile],
    *,
    columns: int = COLUMNS,
    title: str = "",
    legend: Mapping[str, str] | None = None,
) -> "Figure":
    """Plot tiles row by row.

    Args:
        tiles: Images with captions.
        columns: Images per row. More than `COLUMNS` are smaller, so that captions stay readable
            on a page.
        title: Title of the plot.
        legend: Colours by name.
    """
    from matplotlib.figure import Figure

    at_least("columns", columns, 1)
    if not tiles:
        raise DataError("There is nothing to plot: `tiles` must hold at least one image.")
    rows = [tiles[start : start + columns] for start in range(0, len(tiles), columns)]
    side = _tile_side(len(rows[0]))
    heights = [max(_height(tile, side) for tile in row) + _SPACING for row in rows]
    width = max(len(rows[0]) * (side + _SPACING) - _SPACING, round(9 * cell_len(title)))
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
                _draw(axes, tile, side, x=column * (side + _SPACING), y=int(y))
        _draw_legend(axes, legend or {}, height - 4)
        axes.set(xlim=(0, width), ylim=(height, 0))
    return canvas


def _tile_side(columns: int) -> int:
    """Return the longer side of the images of a sheet, in pixels."""
    fitting = (_PAGE_WIDTH + _SPACING) // columns - _SPACING
    return min(MAX_SIDE, max(_MIN_SIDE, fitting))


def _size(tile: Tile, side: int) -> tuple[int, int]:
    """Return the width and height of a tile's image on the sheet, in pixels."""
    height, width = tile.image.shape[:2]
    scale = side / max(height, width)
    return max(1, round(width * scale)), max(1, round(height * scale))


def _height(tile: Tile, side: int) -> int:
    *_, (bottom, _, _) = [(_size(tile, side)[1], "", False), *_lines(tile, side)]
    return bottom


def _lines(tile: Tile, side: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the bottom of each line of text below the tile's top, the line, and if it is a note."""
    bottom = _size(tile, side)[1] + 2
    for line in _wrap(MARKS[tile.is_right] + tile.caption, side / _LETTER):
        bottom += _LINE
        yield bottom, line, False
    for line in _wrap(tile.note, side / _NOTE_LETTER):
        bottom += _NOTE_LINE
        yield bottom, line, True


def _wrap(text: str, num_letters: float) -> list[str]:
    text = clean(text).strip()
    # Fewer wide characters fit into a line.
    ratio = len(text) / max(1, cell_len(text))
    per_line = max(4, int(num_letters * ratio))
    return textwrap.wrap(text, per_line, max_lines=_MAX_LINES, placeholder=" …")


def _draw(axes: "Axes", tile: Tile, side: int, *, x: int, y: int) -> None:
    width, height = _size(tile, side)
    # The file keeps the original pixels, without interpolation.
    edges = (x, x + width, y + height, y)
    axes.imshow(tile.image, extent=edges, interpolation="none", aspect="auto")
    line_width = 0.6 if tile.is_right is None else 2.4
    _outline(axes, (x, y, width, height), color=_FRAMES[tile.is_right], line_width=line_width)
    for number, box in enumerate(tile.boxes):
        color = series_color(number + 1)
        left, top = x + width * box.left, y + height * box.top
        bounds = (left, top, width * (box.right - box.left), height * (box.bottom - box.top))
        # A black outline, so that the box is visible on any background.
        _outline(axes, bounds, color="#000000", line_width=2.6)
        _outline(axes, bounds, color=color, line_width=1.6)
        if box.label:
            tag = {"facecolor": color, "edgecolor": "none", "pad": 1.2}
            axes.text(left, top, clean(box.label), fontsize=7, color="white", va="bottom", bbox=tag)
    for bottom, line, is_note in _lines(tile, side):
        size, alpha = (7.5, 0.7) if is_note else (9.4, 1.0)
        axes.text(x, y + bottom - 3, line, fontsize=size, alpha=alpha)


def _outline(
    axes: "Axes", bounds: tuple[float, float, float, float], *, color: str, line_width: float
) -> None:
    from matplotlib.patches import Rectangle

    x, y, width, height = bounds
    frame = Rectangle((x, y), width, height, fill=False, edgecolor=color, linewidth=line_width)
    # Half of a line at the edge of the sheet is outside it.
    frame.set_clip_on(False)
    axes.add_patch(frame)


def _draw_legend(axes: "Axes", legend: Mapping[str, str], y: float) -> None:
    from matplotlib.patches import Rectangle

    x = 0.0
    for name, color in legend.items():
        axes.add_patch(Rectangle((x, y - 9), 10, 10, facecolor=color, edgecolor="none"))
        axes.text(x + 15, y, clean(name), fontsize=8)
        x += 30 + _NOTE_LETTER * 1.05 * cell_len(clean(name))


if __name__ == "__main__":
    images = [np.full((8, 8), value, dtype=np.uint8) for value in (40, 120, 230)]
    tiles = contact_sheet(images, ["black", "grey", "grey"], ["black", "grey", "white"])
    print(to_svg(sheet(tiles, title="Two of three")))
