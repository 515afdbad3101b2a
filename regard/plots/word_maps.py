"""Heat maps between words as panels of one figure: one map per head, layer or mask."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.cells import cell_len

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, style, to_svg
from regard.plots.heatmap import color_scale
from regard.plots.inputs import check_weights, find_vmax, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL = 0.34
_LETTER = 0.085
_MAX_SIDE = 80.0
_FRAME = "#d5dbe1"
_SLOPE = 50


@dataclass(frozen=True)
class WordMap:
    """Matrix between words."""

    weights: ArrayLike
    """Weights with one row per query and one column per key; -inf is shown as −∞."""
    rows: Sequence[str]
    """Words of the queries."""
    columns: Sequence[str]
    """Words of the keys."""
    divider: int = 0
    """Number of columns before a vertical line; 0 = no line."""


def word_maps(
    panels: Mapping[str, WordMap], *, columns: int = 4, has_values: bool = False
) -> "Figure":
    """Plot maps between words as panels, from white to blue, each with its own maximum.

    Maps with negative values are plotted from red over white to blue.

    Args:
        panels: Maps by title.
        columns: Number of panels per row.
        has_values: Whether cells show their values.
    """
    from matplotlib.figure import Figure

    if not panels:
        raise DataError("There is nothing to plot: `panels` must hold at least one map.")
    maps = list(panels.values())
    columns = min(columns, len(maps))
    num_rows = math.ceil(len(maps) / columns)
    most = [max(len(getattr(one, side)) for one in maps) for side in ("columns", "rows")]
    # Many or long maps have smaller cells, and letters of their size.
    space = [_longest(maps, "rows") + 0.3, 0.8 * _longest(maps, "columns") + 0.45]
    limits = [_MAX_SIDE / columns - space[0], _MAX_SIDE / num_rows - space[1]]
    cell = min(
        _CELL * (1.25 if has_values else 1.0),
        *(max(limit, 4.0) / num for limit, num in zip(limits, most, strict=True)),
    )
    width, height = (cell * num + part for num, part in zip(most, space, strict=True))
    with style():
        figure = Figure(figsize=(width * columns, height * num_rows), layout="constrained")
        all_axes = figure.subplots(num_rows, columns, squeeze=False).flatten()
        for axes, (title, one) in zip(all_axes, panels.items(), strict=False):
            _plot(axes, one, has_values=has_values, font_size=min(10.0, 72 * 0.75 * cell))
            axes.set_title(clean(title), loc="left", fontsize=11)
        for axes in all_axes[len(maps) :]:
            axes.set_axis_off()
    return figure


def _longest(maps: Sequence[WordMap], side: str) -> float:
    return _LETTER * max(cell_len(label(word)) for one in maps for word in getattr(one, side))


def _plot(axes: "Axes", one: WordMap, *, has_values: bool, font_size: float) -> None:
    weights = np.asarray(one.weights, dtype=float)
    # A score of -inf has no colour, like a weight of 0.
    shown = check_weights(np.where(np.isneginf(weights), 0.0, weights), one.rows, one.columns)
    vmax = find_vmax(shown)
    axes.imshow(shown, aspect="equal", **color_scale(shown))
    if one.divider:
        axes.axvline(one.divider - 0.5, color=COLORS[-1], lw=1)
    axes.set_xticks(range(len(one.columns)), [label(word) for word in one.columns])
    axes.set_yticks(range(len(one.rows)), [label(word) for word in one.rows])
    axes.tick_params(top=False, left=False, labeltop=True, bottom=False, labelbottom=False)
    if max(len(word) for word in one.columns) > 1:
        is_small = font_size < 10
        for tick in axes.get_xticklabels():
            tick.set(rotation=90 if is_small else _SLOPE, ha="left", rotation_mode="anchor")
            if is_small:
                tick.set(va="center")
    axes.tick_params(labelsize=font_size)
    axes.spines[:].set(visible=True, color=_FRAME)
    if has_values:
        _write_values(axes, weights, vmax)


def _write_values(axes: "Axes", weights: NDArray[Any], vmax: float) -> None:
    for (row, column), weight in np.ndenumerate(weights):
        text = "−∞" if np.isneginf(weight) else f"{weight:.2f}".removeprefix("0")
        color = "white" if abs(weight) > 0.62 * vmax and np.isfinite(weight) else "#333f4a"
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=color)


if __name__ == "__main__":
    words = "the cat sat".split()
    causal = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    print(to_svg(word_maps({"causal": WordMap(causal, words, words)}, has_values=True)))
