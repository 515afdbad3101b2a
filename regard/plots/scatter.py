"""Points on a plane: groups in colours, planes side by side, or shades that tell a number."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from regard.core.errors import DataError
from regard.plots.figure import COLOURS, style, to_svg
from regard.plots.labels import clean, shorten

Points = Sequence[tuple[float, float]]
"""Pairs of x and y."""

MARKERS = "o^sDv*"
"""Marks of points, by number."""

LABEL_WIDTH = 64
"""Terminal cells of the longest line of a legend."""


def grouped(
    panels: Mapping[str, Points],
    labels: Sequence[str],
    *,
    groups: Sequence[int],
    marks: Sequence[int] | None = None,
) -> Figure:
    """Draw the same items in several planes side by side; a colour a group, a legend for all.

    Args:
        panels: Where each item is, by the title of the plane.
        labels: What each item is, for the legend.
        groups: The group of each item, counted from 0, which gives its colour.
        marks: What else tells items apart, counted from 0, which gives their mark.
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
        planes = figure.subplots(1, len(panels), squeeze=False)[0]
        for plane, (title, points) in zip(planes, panels.items(), strict=True):
            _plane(plane, title)
            for (x, y), group, mark in zip(points, groups, marks, strict=True):
                plane.scatter(x, y, s=58, color=_colour(group), marker=_marker(mark), alpha=0.85)
        handles = [
            Line2D([], [], linestyle="", color=_colour(group), marker=_marker(mark))
            for group, mark in zip(groups, marks, strict=True)
        ]
        names = [shorten(clean(label), LABEL_WIDTH) for label in labels]
        figure.subplots_adjust(bottom=0.24 * len(labels) / (3.6 + 0.2 * len(labels)), wspace=0.12)
        figure.legend(
            handles, names, loc="lower left", bbox_to_anchor=(0.11, 0.0), ncols=1, fontsize=9
        )
    return figure


def shaded(points: Points, values: Sequence[float], *, value_label: str, title: str = "") -> Figure:
    """Draw one point an item, the shade telling a number.

    Args:
        points: Where the items are.
        values: A number for each.
        value_label: What the numbers are.
        title: A line above the drawing.
    """
    if not points or len(points) != len(values):
        raise DataError(
            "There must be as many points as values, and at least one, but there are "
            f"{len(points)} and {len(values)}."
        )
    if not all(
        math.isfinite(number) for number in (*values, *(n for pair in points for n in pair))
    ):
        raise DataError("Points and values must be finite numbers, but one of them is not.")
    with style():
        figure = Figure(figsize=(6.4, 4.2))
        axes = figure.add_subplot()
        _plane(axes, title)
        drawn = axes.scatter(
            [x for x, _ in points],
            [y for _, y in points],
            c=list(values),
            cmap="viridis",
            s=18,
            alpha=0.85,
            linewidths=0,
        )
        # Not a colour bar, which would be an image inside the drawing.
        handles, names = drawn.legend_elements(num=5, fmt="{x:g}")
        axes.legend(
            handles, names, title=clean(value_label), loc="upper left", bbox_to_anchor=(1.0, 1.0)
        )
    return figure


def _plane(axes: Axes, title: str) -> None:
    axes.set(xticks=[], yticks=[], xlabel="first component", ylabel="second component")
    axes.margins(0.12)
    axes.set_title(clean(title), loc="left", fontweight="bold", fontsize=10)


def _colour(group: int) -> str:
    return COLOURS[group % len(COLOURS)]


def _marker(mark: int) -> str:
    return MARKERS[mark % len(MARKERS)]


if __name__ == "__main__":
    print(
        to_svg(
            grouped(
                {"order": [(0, 0), (1, 0), (0, 1), (1, 1)], "none": [(0, 0), (1, 1)] * 2},
                ["He sees her.", "Her he sees.", "She sees him.", "Him she sees."],
                groups=[0, 0, 1, 1],
                marks=[0, 1, 0, 1],
            )
        )
    )
