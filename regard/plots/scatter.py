"""Scatter plots: points coloured by group, by label or by value, in panels side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, series_color, style, to_svg
from regard.plots.inputs import Points, label

MARKERS = "o^sDv*"
"""Markers of points, by index."""

LABEL_WIDTH = 64
"""Maximum width of a line of the legend, in terminal cells."""

MAX_POINTS = 2_000
"""Maximum number of points per panel; of more items, evenly spaced ones are shown."""

_SIDE = 4.2
_LETTER, _LINE = 0.05, 0.1
"""Width of a letter and height of a line, relative to half an axis."""
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
        panels: Positions of the items by title of the panel.
        labels: Legend text of each item.
        groups: Group of each item, counted from 0, which determines its colour.
        marks: Second grouping, counted from 0, which determines the marker.
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
                color = series_color(group)
                axes.scatter(x, y, s=58, color=color, marker=_marker(mark), alpha=0.85)
        handles = [
            Line2D([], [], linestyle="", color=series_color(group), marker=_marker(mark))
            for group, mark in zip(groups, marks, strict=True)
        ]
        names = [label(text, LABEL_WIDTH) for text in labels]
        figure.subplots_adjust(bottom=0.24 * len(labels) / (3.6 + 0.2 * len(labels)), wspace=0.12)
        figure.legend(
            handles, names, loc="lower left", bbox_to_anchor=(0.11, 0.0), ncols=1, fontsize=9
        )
    return figure


def shaded(points: Points, values: Sequence[float], *, value_label: str, title: str = "") -> Figure:
    """Plot one point per item, coloured by a value.

    Args:
        points: Positions of the items.
        values: Value of each item.
        value_label: Title of the legend.
        title: Title of the plot.
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
        xs, ys, colors = table.T
        scatter = axes.scatter(xs, ys, c=colors, cmap="viridis", s=18, alpha=0.85, linewidths=0)
        # A colour bar would be an embedded image.
        handles, names = scatter.legend_elements(num=5, fmt="{x:g}")
        axes.legend(
            handles, names, title=clean(value_label), loc="upper left", bbox_to_anchor=(1.0, 1.0)
        )
    return figure


def projections(
    positions: Mapping[str, ArrayLike], labels: Sequence[str], *, notes: Mapping[str, str]
) -> Figure:
    """Plot the same items in several panels with the same axes, coloured by label.

    Each panel is centred and scaled to a root mean square distance of 1 from the centre.

    Args:
        positions: Positions of all items in each panel, (B, 2).
        labels: Label of each item.
        notes: Subtitle of each panel.
    """
    scaled = {name: _scale(np.asarray(array, np.float64)) for name, array in positions.items()}
    for name, points in scaled.items():
        if points.shape != (len(labels), 2) or not len(labels):
            raise DataError(
                f"Each of {len(labels):,} items must have two coordinates in panel '{name}', but "
                f"their shape is {points.shape}."
            )
    shown = np.linspace(0, len(labels) - 1, min(MAX_POINTS, len(labels))).astype(int)
    label_array = np.array(labels)
    limit = 1.06 * max(np.abs(points[shown]).max() for points in scaled.values())
    with style():
        figure = Figure(figsize=(_SIDE * len(scaled), _SIDE + 0.3), layout="constrained")
        panels = figure.subplots(1, len(scaled), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (name, points) in zip(panels, scaled.items(), strict=True):
            axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
            axes.set_title(clean(name), loc="left", fontweight="bold", pad=20)
            axes.text(0, 1.01, clean(notes.get(name, "")), transform=axes.transAxes, va="bottom")
            axes.grid()
            _plot_labels(axes, points[shown], label_array[shown])
    return figure


def _set_up(axes: Axes, title: str) -> None:
    axes.set(xticks=[], yticks=[], xlabel="first component", ylabel="second component")
    axes.margins(0.12)
    axes.set_title(clean(title), loc="left", fontweight="bold", fontsize=10)


def _marker(mark: int) -> str:
    return MARKERS[mark % len(MARKERS)]


def _scale(points: NDArray[np.float64]) -> NDArray[np.float64]:
    centered = points - points.mean(0)
    distance = np.sqrt((centered**2).sum(-1).mean())
    return np.asarray(centered / max(distance, 1e-12))


def _plot_labels(axes: Axes, points: NDArray[np.float64], labels: NDArray[np.str_]) -> None:
    """Plot the points of each label with its name at their median, as colours repeat."""
    names = sorted(set(labels.tolist()))
    for number, name in enumerate(names):
        selected = points[labels == name]
        axes.scatter(
            selected[:, 0],
            selected[:, 1],
            s=7,
            marker=MARKERS[number // len(COLORS) % 3],
            color=series_color(number),
            alpha=0.55,
            linewidths=0,
            # Thousands of points take less space as pixels than as vectors.
            rasterized=True,
        )
    medians = {name: np.median(points[labels == name], axis=0) for name in names}
    limit = float(axes.get_xlim()[1])
    for number, (name, (x, y)) in enumerate(_separate(medians, limit).items()):
        text = axes.text(x, y, clean(name), ha="center", va="center", bbox=_WHITE)
        text.set(color=series_color(number), fontsize=9, fontweight="bold")


def _separate(
    positions: Mapping[str, NDArray[np.float64]], limit: float
) -> dict[str, NDArray[np.float64]]:
    """Return positions of names, moved up so that they do not overlap."""
    placed: dict[str, NDArray[np.float64]] = {}
    for name in sorted(positions, key=lambda name: float(positions[name][1])):
        x, y = positions[name]
        for other, (other_x, other_y) in placed.items():
            width = _LETTER * limit * (len(name) + len(other)) / 2
            if abs(x - other_x) < width and y - other_y < _LINE * limit:
                y = max(y, other_y + _LINE * limit)
        placed[name] = np.array([x, y])
    return {name: placed[name] for name in positions}


if __name__ == "__main__":
    points = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    sentences = ["He sees her.", "Her he sees.", "She sees him.", "Him she sees."]
    print(to_svg(grouped({"order": points}, sentences, groups=[0, 0, 1, 1], marks=[0, 1, 0, 1])))
