"""Maps of weights for the terminal: coloured blocks, or shades where there is no colour."""

import shutil
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from regard.plots.labels import MAX_WIDTH, clean, shorten
from regard.plots.weights import check_weights, greatest

_SHADES = {"░": 0.05, "▒": 0.25, "▓": 0.5, "█": 0.75}
# From dark to bright: a picture of its own, on light and on dark terminals alike.
_RAMP = {0.0: (20, 28, 41), 0.35: (29, 84, 128), 0.7: (78, 167, 214), 1.0: (240, 250, 255)}


def heatmap(
    weights: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    width: int | None = None,
    has_values: bool = False,
) -> Text:
    """Draw a map as text that a `rich` console prints in colour; its `.plain` needs no colour.

    Each source word stands on a line of its own, joined to its column. A map that is too wide
    continues below.

    Args:
        weights: (T, S).
        rows: Target words.
        columns: Source words.
        width: Cells of a line; the terminal's own width if not given.
        has_values: Whether cells show their weight in hundredths instead of a shade.
    """
    array = check_weights(weights, rows, columns)
    most = greatest(array)
    heads = [shorten(clean(word), MAX_WIDTH) for word in columns]
    names = [shorten(clean(word), MAX_WIDTH) for word in rows]
    margin = max(map(cell_len, names)) + 1
    cell = 3 if has_values else 2
    room = (width or shutil.get_terminal_size((100, 24)).columns) - margin
    per_part = max(1, (room - max(map(cell_len, heads)) - 3) // cell + 1)
    text = Text(no_wrap=True, overflow="ignore")
    for start in range(0, len(heads), per_part):
        part = slice(start, start + per_part)
        text.append(_staircase(heads[part], margin, cell))
        for name, values in zip(names, array[:, part], strict=True):
            text.append(" " * (margin - 1 - cell_len(name)) + name + " ")
            for value in values:
                shown = f"{100 * value:3.0f}" if has_values else _shade(value / most) * cell
                text.append(shown, _style(value / most, is_solid=not has_values))
            text.append("\n")
        text.append("\n")
    return text if has_values else text.append_text(_legend(most, margin))


def strip(strengths: ArrayLike) -> Text:
    """Draw strengths of 0 to 1 as one line, a cell each."""
    text = Text(no_wrap=True)
    for strength in np.asarray(strengths, dtype=float):
        text.append(_shade(strength), _style(strength, is_solid=True))
    return text


def _staircase(heads: Sequence[str], margin: int, cell: int) -> str:
    indent = " " * (margin + cell // 3)
    bar = "│" + " " * (cell - 1)
    return "".join(f"{indent}{bar * step}╭ {head}\n" for step, head in enumerate(heads))


def _shade(strength: float) -> str:
    marks = [mark for mark, least in _SHADES.items() if strength >= least]
    return marks[-1] if marks else " "


def _style(strength: float, *, is_solid: bool) -> Style:
    stops = np.array(list(_RAMP.values()))
    red, green, blue = (np.interp(strength, list(_RAMP), stops[:, channel]) for channel in range(3))
    ground = Color.from_rgb(red, green, blue)
    # A mark in the colour of its ground is a solid block; without colour the mark remains.
    ink = ground if is_solid else Color.parse("#ffffff" if strength < 0.6 else "#000000")
    return Style.from_color(ink, ground)


def _legend(most: float, margin: int) -> Text:
    text = Text(" " * margin)
    for mark, least in _SHADES.items():
        # The middle of a shade's range stands for all of it.
        text.append(mark * 2, _style(least + 0.12, is_solid=True))
        text.append(f" ≥ {least * most:.2f}   ")
    text.rstrip()
    return text


if __name__ == "__main__":
    source = "the green house stands by the river .".split()
    target = "das grüne Haus steht am Fluss .".split()
    positions = np.linspace(0, len(source) - 1, len(target))
    distances = positions[:, None] - np.arange(len(source))
    demo = np.exp(-(distances**2))
    Console().print(heatmap(demo / demo.sum(axis=1, keepdims=True), target, source))
