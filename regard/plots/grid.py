"""Images on a sheet, row by row, with words below and boxes over them: as SVG, HTML and PNG."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike
from rich.cells import cell_len

from regard.core.config import at_least
from regard.core.errors import ConfigError, DataError
from regard.core.files import write_text
from regard.plots import figure as picture
from regard.plots.figure import COLOURS, style, to_svg
from regard.plots.html import Section, figure, report
from regard.plots.labels import clean
from regard.plots.pixels import KEPT, Pixels, check_image, fit

COLUMNS = 5
"""Images of a row: as many as fit on a page."""

RIGHT, WRONG = COLOURS[0], COLOURS[1]
"""Blue and orange, which everybody can tell apart; a mark says the same."""

MARKS = {True: "✓ ", False: "✗ ", None: ""}
"""What stands before the caption of an answer that is right, of one that is wrong, of any other."""

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
    """An image and what is said of it."""

    image: Pixels
    """(Y, X, 3)."""
    caption: str = ""
    """Words below it."""
    note: str = ""
    """Quiet words below these."""
    is_right: bool | None = None
    """Whether an answer is right, where this is one: its frame and a mark tell."""
    boxes: tuple[Box, ...] = ()
    """Rectangles over it."""


def contact_sheet(
    images: Sequence[ArrayLike], answers: Sequence[str], right: Sequence[str]
) -> list[Tile]:
    """Show images with what was answered and, where that is wrong, what is right.

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
    """Draw tiles row by row.

    Args:
        tiles: What stands on the sheet.
        columns: Images of a row.
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


def save(path: Path, drawn: Figure, *, title: str = "") -> None:
    """Save a sheet in the format that the file name ends in: `.png`, `.svg` or `.html`.

    Args:
        path: The file to write.
        drawn: What `sheet` returns.
        title: The heading of an HTML page.
    """
    check_path(path)
    if path.suffix == ".html":
        write_text(path, report(title or "Images", [Section("", figure(to_svg(drawn)))]))
    else:
        picture.save(path, drawn)


def check_path(path: Path, name: str = "path") -> None:
    """Raise a `ConfigError` if a file's name ends in nothing that `save` can write.

    Args:
        path: The file.
        name: What people call it.
    """
    if path.suffix not in (".png", ".svg", ".html"):
        raise ConfigError(f"`{name}` must end in .png, .svg or .html, but is '{path}'.")


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
    _outline(axes, (x, y, width, height), colour=_FRAMES[tile.is_right], thickness=thickness)
    for number, box in enumerate(tile.boxes):
        colour = COLOURS[(number + 1) % len(COLOURS)]
        left, top = x + width * box.left, y + height * box.top
        bounds = (left, top, width * (box.right - box.left), height * (box.bottom - box.top))
        # A dark rim, so that the box is seen on any ground.
        _outline(axes, bounds, colour="#000000", thickness=2.6)
        _outline(axes, bounds, colour=colour, thickness=1.6)
        if box.label:
            tag = {"facecolor": colour, "edgecolor": "none", "pad": 1.2}
            axes.text(left, top, clean(box.label), fontsize=7, color="white", va="bottom", bbox=tag)
    for below, line, is_quiet in _lines(tile):
        size, strength = (7.5, 0.7) if is_quiet else (9.4, 1.0)
        axes.text(x, y + below - 3, line, fontsize=size, alpha=strength)


def _outline(
    axes: Axes, bounds: tuple[float, float, float, float], *, colour: str, thickness: float
) -> None:
    x, y, width, height = bounds
    frame = Rectangle((x, y), width, height, fill=False, edgecolor=colour, linewidth=thickness)
    # Half of a line at the edge of the sheet lies beyond it.
    frame.set_clip_on(False)
    axes.add_patch(frame)


def _draw_legend(axes: Axes, legend: Mapping[str, str], y: float) -> None:
    x = 0.0
    for name, colour in legend.items():
        axes.add_patch(Rectangle((x, y - 9), 10, 10, facecolor=colour, edgecolor="none"))
        axes.text(x + 15, y, clean(name), fontsize=8)
        x += 30 + _NOTE_LETTER * 1.05 * cell_len(clean(name))


if __name__ == "__main__":
    shades = [np.full((8, 8), shade, dtype=np.uint8) for shade in (40, 120, 230)]
    found = contact_sheet(shades, ["black", "grey", "grey"], ["black", "grey", "white"])
    print(to_svg(sheet(found, title="Two of three")))
