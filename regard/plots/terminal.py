"""Heat maps and images as terminal text: coloured blocks, or shades without colour."""

import shutil
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from regard.plots.grid import MARKS, Tile
from regard.plots.inputs import Pixels, check_image, check_weights, find_vmax, label

_SHADES = {"░": 0.05, "▒": 0.25, "▓": 0.5, "█": 0.75}
# From dark to bright: readable on light and on dark terminals.
_RAMP = {0.0: (20, 28, 41), 0.35: (29, 84, 128), 0.7: (78, 167, 214), 1.0: (240, 250, 255)}
_NEGATIVE_RAMP = {0.0: (20, 28, 41), 0.35: (122, 30, 34), 0.7: (214, 96, 77), 1.0: (255, 228, 216)}
_BLOCKS = " ░▒▓█"
_SPACING = 2

WIDTH = 30
"""Width of an image in cells, if the line is wide enough."""

Render = Callable[[ArrayLike, int], list[Text]]
"""Function from an image and the cells of its longest side to lines of text."""


def line_width(width: int | None) -> int:
    """Return `width`, or the width of the terminal if not given."""
    return width or shutil.get_terminal_size((100, 24)).columns


def heatmap(
    weights: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    width: int | None = None,
    has_values: bool = False,
    divider: int = 0,
) -> Text:
    """Render a heat map as text for a `rich` console; its `.plain` is readable without colour.

    Each source word has its own line, connected to its column. A heat map that is too wide is
    continued below. Negative weights are red and marked by a minus sign.

    Args:
        weights: (T, S).
        rows: Target words.
        columns: Source words.
        width: Width of a line in cells; that of the terminal if not given.
        has_values: Whether cells show their weight in hundredths instead of a shade.
        divider: Number of columns before a vertical line; 0 = no line.
    """
    array = check_weights(weights, rows, columns)
    vmax = find_vmax(array)
    heads = [label(word) for word in columns]
    names = [label(word) for word in rows]
    margin = max(map(cell_len, names)) + 1
    cell = 3 if has_values else 2
    available = line_width(width) - margin - bool(divider)
    per_part = max(1, (available - max(map(cell_len, heads)) - 3) // cell + 1)
    text = Text(no_wrap=True, overflow="ignore")
    for start in range(0, len(heads), per_part):
        part = slice(start, start + per_part)
        text.append(_staircase(heads[part], margin, cell, divider=divider - start))
        for name, values in zip(names, array[:, part], strict=True):
            text.append(" " * (margin - 1 - cell_len(name)) + name + " ")
            for column, value in enumerate(values, start):
                if divider and column == divider:
                    text.append("┊")
                strength = float(abs(value)) / vmax
                if has_values:
                    shown = f"{100 * value:3.0f}"
                else:
                    shown = _shade(strength) * cell
                    if value < 0 and shown.strip():
                        shown = shown[:-1] + "-"
                is_solid = not has_values and value >= 0
                text.append(shown, _style(strength, is_solid=is_solid, is_negative=value < 0))
            text.append("\n")
        text.append("\n")
    return text if has_values else text.append_text(_legend(vmax, margin))


def strip(strengths: ArrayLike) -> Text:
    """Render values from 0 to 1 as one line, one cell each."""
    text = Text(no_wrap=True)
    for strength in np.asarray(strengths, dtype=float):
        text.append(_shade(strength), _style(strength, is_solid=True))
    return text


def half_blocks(image: ArrayLike, width: int = WIDTH) -> list[Text]:
    """Render an image in colour, with two pixels, one above the other, per cell.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; uint8.
        width: Longest side, in cells.
    """
    return _colored(_shrink(image, width))


def shades(image: ArrayLike, width: int = WIDTH) -> list[Text]:
    """Render an image in shaded blocks; brighter pixels are denser.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; uint8.
        width: Longest side, in cells.
    """
    return _shaded(_shrink(image, width))


def stretch(image: ArrayLike, width: int, height: int, *, has_color: bool = True) -> list[Text]:
    """Render an image stretched to a number of cells and lines, such as a spectrogram.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; uint8.
        width: Width in cells.
        height: Height in lines.
        has_color: Whether the terminal supports colour.
    """
    size = (width, 2 * height)
    pixels = np.asarray(Image.fromarray(check_image(image)).resize(size, Image.Resampling.BOX))
    return _colored(pixels) if has_color else _shaded(pixels)


def mosaic(
    tiles: Sequence[Tile], *, render: Render = half_blocks, width: int | None = None
) -> Text:
    """Render tiles side by side, as many as fit into a line, with their captions below.

    Args:
        tiles: Images with captions; boxes are omitted.
        render: `half_blocks`, or `shades` without colour.
        width: Width of a line in cells; that of the terminal if not given.
    """
    available = line_width(width)
    cell = min(WIDTH, available)
    per_row = (available + _SPACING) // (cell + _SPACING)
    lines = []
    for start in range(0, len(tiles), per_row):
        row = tiles[start : start + per_row]
        images = [render(tile.image, cell) for tile in row]
        tallest = max(map(len, images))
        columns = [
            [*image, *[Text()] * (tallest - len(image)), *_captions(tile, cell)]
            for tile, image in zip(row, images, strict=True)
        ]
        for parts in zip(*columns, strict=True):
            for part in parts[:-1]:
                part.pad_right(cell + _SPACING - part.cell_len)
            lines.append(Text().join(parts))
        lines.append(Text())
    return Text("\n", no_wrap=True, overflow="ignore").join(lines)


def _staircase(heads: Sequence[str], margin: int, cell: int, *, divider: int) -> str:
    """Return the labels of columns; a column `divider`, if there is one, is moved by one cell."""
    indent = " " * (margin + cell // 3)
    lines = []
    for step, head in enumerate(heads):
        bars = ["│" + " " * (cell - 1)] * step
        if 0 < divider <= step:
            bars.insert(divider, " ")
        lines.append(f"{indent}{''.join(bars)}╭ {head}\n")
    return "".join(lines)


def _shade(strength: float) -> str:
    marks = [mark for mark, threshold in _SHADES.items() if strength >= threshold]
    return marks[-1] if marks else " "


def _style(strength: float, *, is_solid: bool, is_negative: bool = False) -> Style:
    ramp = _NEGATIVE_RAMP if is_negative else _RAMP
    stops = np.array(list(ramp.values()))
    red, green, blue = (np.interp(strength, list(ramp), stops[:, channel]) for channel in range(3))
    background = Color.from_rgb(red, green, blue)
    # A mark in the background colour is a solid block; without colour the mark is visible.
    foreground = background if is_solid else Color.parse("#ffffff" if strength < 0.6 else "#000000")
    return Style.from_color(foreground, background)


def _legend(vmax: float, margin: int) -> Text:
    text = Text(" " * margin)
    for mark, threshold in _SHADES.items():
        # The middle of the range of a shade.
        text.append(mark * 2, _style(threshold + 0.12, is_solid=True))
        text.append(f" ≥ {threshold * vmax:.2f}   ")
    text.rstrip()
    return text


def _colored(pixels: Pixels) -> list[Text]:
    lines = []
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        line = Text(no_wrap=True)
        for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
            line.append("▀", Style.from_color(Color.from_rgb(*above), Color.from_rgb(*below)))
        lines.append(line)
    return lines


def _shaded(pixels: Pixels) -> list[Text]:
    grey = pixels.mean(-1)  # (Y, X)
    cells = (grey[::2] + grey[1::2]) / 2
    steps = (cells / 256 * len(_BLOCKS)).astype(int)
    return [Text("".join(_BLOCKS[step] for step in row), no_wrap=True) for row in steps]


def _captions(tile: Tile, width: int) -> list[Text]:
    caption = label(MARKS[tile.is_right] + tile.caption, width)
    return [Text(caption), Text(label(tile.note, width), "dim")]


def _shrink(image: ArrayLike, longest: int) -> Pixels:
    """Resize an image to (2Y, X, 3): pixels are square, and two of them make a cell."""
    pixels = check_image(image)
    height, width = pixels.shape[:2]
    scale = longest / max(height, width)
    size = (max(1, round(width * scale)), 2 * max(1, round(height * scale / 2)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))


if __name__ == "__main__":
    words = "the green house stands by the river .".split()
    Console().print(heatmap(np.exp(-np.abs(np.subtract.outer(range(8), range(8)))), words, words))
    Console().print(mosaic([Tile(np.arange(48, dtype=np.uint8).reshape(4, 4, 3), "dark")]))
