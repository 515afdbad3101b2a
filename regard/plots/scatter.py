"""Scatter plots: points coloured by group, by label or by a number, in panels side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.plots.figure import COLOURS, colour, style, to_svg
from regard.plots.inputs import Points, clean, label

MARKERS = "o^sDv*"
"""Markers of points, by number."""

LABEL_WIDTH = 64
"""Terminal cells of the longest line of a legend."""

MOST_DOTS = 2_000
"""Dots of a panel; of more items, evenly spaced ones are shown."""

_SIDE = 4.2
_LETTER, _LINE = 0.05, 0.1
"""A letter's width and a line's height, as shares of half an axis."""
_WHITE: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0}


def grouped(
    panels: Mapping[str, Points],
    labels: Sequence[str],
    *,
    groups: Sequence[int],
    marks: Sequence[int] | None = None,
) -> Figure:
    """Plot the same items in several panels, coloured by group, with one legend.

    Args:
        panels: Positions of the items, by the title of the panel.
        labels: Text of each item for the legend.
        groups: The group of each item, counted from 0, which gives its colour.
        marks: A second grouping, counted from 0, which gives the marker.
    """
    marks = marks or [0] * len(labels)
    for title, points in panels.items():
        if not len(points) == len(labels) == len(groups) == len(marks) or not labels:
            raise DataError(
                f"Each of the {len(labels)} labels needs a point, a group and a mark, but "
                f"'{title}' has {len(points)} points."
            )
    with style():
        figure = Figure(figsize=(4.0 * len(panels), 3.6 + 0.2 * len(labels)))
        panel_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, points) in zip(panel_axes, panels.items(), strict=True):
            _set_up(axes, title)
            for (x, y), group, mark in zip(points, groups, marks, strict=True):
                axes.scatter(x, y, s=58, color=colour(group), marker=_marker(mark), alpha=0.85)
        handles = [
            Line2D([], [], linestyle="", color=colour(group), marker=_marker(mark))
            for group, mark in zip(groups, marks, strict=True)
        ]
        names = [label(text, LABEL_WIDTH) for text in labels]
        figure.subplots_adjust(bottom=0.24 * len(labels) / (3.6 + 0.2 * len(labels)), wspace=0.12)
        figure.legend(
            handles, names, loc="lower left", bbox_to_anchor=(0.11, 0.0), ncols=1, fontsize=9
        )
    return figure


def shaded(points: Points, values: Sequence[float], *, value_label: str, title: str = "") -> Figure:
    """Plot one point per item, coloured by a number.

    Args:
        points: Positions of the items.
        values: A number for each.
        value_label: What the numbers are.
        title: A line above the plot.
    """
    if not points or len(points) != len(values):
        raise DataError(
            "There must be as many points as values, and at least one, but there are "
            f"{len(points)} and {len(values)}."
        )
    table = np.column_stack([points, values])
    if not np.isfinite(table).all():
        raise DataError("Points and values must be finite numbers, but one of them is not.")
    with style():
        figure = Figure(figsize=(6.4, 4.2))
        axes = figure.add_subplot()
        _set_up(axes, title)
        across, down, shades = table.T
        drawn = axes.scatter(across, down, c=shades, cmap="viridis", s=18, alpha=0.85, linewidths=0)
        # Not a colour bar, which would be an image inside the plot.
        handles, names = drawn.legend_elements(num=5, fmt="{x:g}")
        axes.legend(
            handles, names, title=clean(value_label), loc="upper left", bbox_to_anchor=(1.0, 1.0)
        )
    return figure


def planes(
    positions: Mapping[str, ArrayLike], labels: Sequence[str], *, notes: Mapping[str, str]
) -> Figure:
    """Plot the same items in several panels with the same axes, coloured by label.

    Each panel is centred and divided by the root mean square distance of its dots from the centre,
    so that none is larger.

    Args:
        positions: For each panel the positions of all items, (B, 2).
        labels: The label of each item.
        notes: A line above each panel.
    """
    spread = {name: _scale(np.asarray(found, np.float64)) for name, found in positions.items()}
    for name, found in spread.items():
        if found.shape != (len(labels), 2) or not len(labels):
            raise DataError(
                f"Each of {len(labels):,} items must have two numbers on the plane '{name}', but "
                f"their shape is {found.shape}."
            )
    shown = np.linspace(0, len(labels) - 1, min(MOST_DOTS, len(labels))).astype(int)
    named = np.array(labels)
    reach = 1.06 * max(np.abs(found[shown]).max() for found in spread.values())
    with style():
        figure = Figure(figsize=(_SIDE * len(spread), _SIDE + 0.3), layout="constrained")
        panels = figure.subplots(1, len(spread), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (name, found) in zip(panels, spread.items(), strict=True):
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
            axes.set_title(clean(name), loc="left", fontweight="bold", pad=20)
            axes.text(0, 1.01, clean(notes.get(name, "")), transform=axes.transAxes, va="bottom")
            axes.grid()
            _dots(axes, found[shown], named[shown])
    return figure


def _set_up(axes: Axes, title: str) -> None:
    axes.set(xticks=[], yticks=[], xlabel="first component", ylabel="second component")
    axes.margins(0.12)
    axes.set_title(clean(title), loc="left", fontweight="bold", fontsize=10)


def _marker(mark: int) -> str:
    return MARKERS[mark % len(MARKERS)]


def _scale(found: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = found - found.mean(0)
    distance = np.sqrt((centred**2).sum(-1).mean())
    return np.asarray(centred / max(distance, 1e-12))


def _dots(axes: Axes, found: NDArray[np.float64], labels: NDArray[np.str_]) -> None:
    """Plot the dots of every label with its name among them, as colours repeat."""
    names = sorted(set(labels.tolist()))
    for number, name in enumerate(names):
        own = found[labels == name]
        axes.scatter(
            own[:, 0],
            own[:, 1],
            s=7,
            marker=MARKERS[number // len(COLOURS) % 3],
            color=colour(number),
            alpha=0.55,
            linewidths=0,
            # Thousands of dots are smaller as pixels than as vectors.
            rasterized=True,
        )
    middles = {name: np.median(found[labels == name], axis=0) for name in names}
    reach = float(axes.get_xlim()[1])
    for number, (name, (x, y)) in enumerate(_separate(middles, reach).items()):
        words = axes.text(x, y, clean(name), ha="center", va="center", bbox=_WHITE)
        words.set(color=colour(number), fontsize=9, fontweight="bold")


def _separate(
    positions: Mapping[str, NDArray[np.float64]], reach: float
) -> dict[str, NDArray[np.float64]]:
    """Return positions of names, moved up so that none covers another."""
    placed: dict[str, NDArray[np.float64]] = {}
    for name in sorted(positions, key=lambda name: float(positions[name][1])):
        x, y = positions[name]
        for other, (other_x, other_y) in placed.items():
            width = _LETTER * reach * (len(name) + len(other)) / 2
            if abs(x - other_x) < width and y - other_y < _LINE * reach:
                y = max(y, other_y + _LINE * reach)
        placed[name] = np.array([x, y])
    return {name: placed[name] for name in positions}


if __name__ == "__main__":
    points = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    sentences = ["He sees her.", "Her he sees.", "She sees him.", "Him she sees."]
    print(to_svg(grouped({"order": points}, sentences, groups=[0, 0, 1, 1], marks=[0, 1, 0, 1])))
