"""Functions of one and two variables with the steps of an optimiser."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, hide_unused, series_color, style
from regard.plots.inputs import Points

_WIDTH = 9.6
_NUM_POINTS = 48
_NUM_LEVELS = 9

Surface = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
"""Function of two arrays of coordinates, applied element-wise."""


def curve_steps(
    curve: Points,
    steps: Mapping[str, Mapping[str, Points]],
    *,
    x_label: str,
    y_label: str,
    columns: int = 3,
) -> Figure:
    """Plot a function of one variable in each panel, with steps as connected points.

    Steps outside the range of the curve are cut off. A ring marks the first point of each series.

    Args:
        curve: Points of the function.
        steps: Points by name for each panel, by its title.
        x_label: Label of the x axes.
        y_label: Label of the y axes.
        columns: Number of panels in a row.
    """
    if not curve:
        raise DataError("There is nothing to plot: `curve` must hold at least one point.")
    xs, ys = np.reshape(curve, (-1, 2)).T
    margin = 0.08 * (ys.max() - ys.min())
    limits = {"xlim": (xs.min(), xs.max()), "ylim": (ys.min() - margin, ys.max() + margin)}
    with style():
        figure, grid = _panels(len(steps), columns, height=2.9)
        for axes, (title, series) in zip(grid.flat, steps.items(), strict=False):
            axes.plot(xs, ys, color=COLORS[-1], lw=1.4, zorder=1)
            axes.set_title(clean(title), loc="left", fontweight="bold")
            for number, points in enumerate(series.values()):
                _path(axes, points, series_color(number))
            axes.set(**limits)
        _finish(figure, grid, steps, x_label=x_label, y_label=y_label)
    return figure


def contours(
    surface: Surface,
    paths: Mapping[str, Mapping[str, Points]],
    *,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    labels: tuple[str, str] = ("x", "y"),
    columns: int = 3,
) -> Figure:
    """Plot contours of a function of two variables in each panel, with paths over them.

    The levels are closer to each other near the minimum. A ring marks the start of each path.

    Args:
        surface: The function.
        paths: Points by name for each panel, by its title. Parts outside the range are cut off.
        x_range: Range of the first variable.
        y_range: Range of the second variable.
        labels: Labels of the axes.
        columns: Number of panels in a row.
    """
    xs, ys = np.meshgrid(np.linspace(*x_range, _NUM_POINTS), np.linspace(*y_range, _NUM_POINTS))
    values = surface(xs, ys)
    lowest = values.min()
    levels = lowest + (values.max() - lowest) * np.linspace(0.02, 1, _NUM_LEVELS) ** 2
    with style():
        figure, grid = _panels(len(paths), columns, height=2.6)
        for axes, (title, series) in zip(grid.flat, paths.items(), strict=False):
            axes.contour(xs, ys, values, levels, colors=COLORS[-1], linewidths=0.7, alpha=0.6)
            axes.set_title(clean(title), loc="left", fontweight="bold")
            for number, points in enumerate(series.values()):
                _path(axes, points, series_color(number))
            axes.set(xlim=x_range, ylim=y_range)
        _finish(figure, grid, paths, x_label=labels[0], y_label=labels[1])
    return figure


def _panels(num: int, columns: int, *, height: float) -> tuple[Figure, NDArray[Any]]:
    if not num:
        raise DataError("There is nothing to plot: at least one panel is needed.")
    columns = min(columns, num)
    num_rows = math.ceil(num / columns)
    figure = Figure(figsize=(_WIDTH, height * num_rows + 0.5), layout="constrained")
    return figure, figure.subplots(num_rows, columns, sharex=True, sharey=True, squeeze=False)


def _path(axes: Axes, points: Points, color: str) -> None:
    # Values that have diverged would overflow when they are drawn.
    path = np.clip(np.nan_to_num(np.reshape(points, (-1, 2)), nan=1e9), -1e9, 1e9)
    axes.plot(*path.T, color=color, lw=1.2, marker="o", markersize=3, zorder=2)
    axes.plot(*path[0], marker="o", markersize=8, fillstyle="none", color=color, zorder=3)


def _finish(
    figure: Figure,
    grid: NDArray[Any],
    series: Mapping[str, Mapping[str, Points]],
    *,
    x_label: str,
    y_label: str,
) -> None:
    hide_unused(grid, len(series))
    figure.supxlabel(clean(x_label), fontsize="medium")
    figure.supylabel(clean(y_label), fontsize="medium")


if __name__ == "__main__":
    from regard.plots.figure import to_svg

    path = [(0.8**step, (-0.9) ** step) for step in range(9)]
    paths = {"ravine": {"path": path}}
    ends = (-1.2, 1.2)
    print(to_svg(contours(lambda x, y: x**2 + 9 * y**2, paths, x_range=ends, y_range=ends)))
