"""Decision regions of classifiers of points in the plane, in panels side by side."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, style, to_svg

CLASS_COLORS = COLORS[:2]
CLASS_MARKERS = "os"
"""Colours and markers of the classes 0 and 1."""

_SIDE = 2.5
_NUM_CELLS = 181
_NUM_FEW = 10
"""Number of points up to which they are plotted large."""
_MARGIN = 0.15
"""Space around the points, as a share of the range of their coordinates."""


@dataclass(frozen=True)
class Classified:
    """Points of two classes, and a classifier."""

    points: ArrayLike
    """(B, 2)."""
    labels: ArrayLike
    """(B,), the classes of the points: 0 or 1."""
    predict: Callable[[NDArray[np.float64]], ArrayLike]
    """Map positions (B, 2) to probabilities of class 1, (B,)."""


def decision_regions(
    panels: Mapping[str, Classified],
    *,
    x_label: str = "x₁",
    y_label: str = "x₂",
    columns: int = 4,
) -> Figure:
    """Plot the predicted class of each position in the plane, the boundary, and the points.

    Args:
        panels: Points with a classifier, by title.
        x_label: Label of the first coordinate.
        y_label: Label of the second coordinate.
        columns: Panels per row.
    """
    if not panels:
        raise DataError("There is nothing to plot: `panels` must hold at least one classifier.")
    num_columns = min(columns, len(panels))
    num_rows = math.ceil(len(panels) / num_columns)
    with style():
        size = (_SIDE * num_columns + 0.5, (_SIDE + 0.35) * num_rows + 0.3)
        figure = Figure(figsize=size, layout="constrained")
        all_axes = figure.subplots(num_rows, num_columns, squeeze=False)
        for axes in all_axes.flat[len(panels) :]:
            axes.set_axis_off()
        for axes, (title, panel) in zip(all_axes.flat, panels.items(), strict=False):
            _plot(axes, title, panel)
        for axes in all_axes[-1]:
            axes.set_xlabel(clean(x_label))
        for axes in all_axes[:, 0]:
            axes.set_ylabel(clean(y_label))
    return figure


def _plot(axes: Axes, title: str, panel: Classified) -> None:
    points, labels = np.asarray(panel.points, np.float64), np.asarray(panel.labels)
    if points.ndim != 2 or points.shape != (len(labels), 2) or not len(labels):
        raise DataError(
            f"Each of {len(labels):,} labels must have a point with two coordinates in panel "
            f"'{title}', but the shape of the points is {points.shape}."
        )
    low, high = points.min(0), points.max(0)
    margin = _MARGIN * float((high - low).max())
    x, y = (np.linspace(low[k] - margin, high[k] + margin, _NUM_CELLS) for k in (0, 1))
    grid = np.stack(np.meshgrid(x, y), axis=-1)  # (Y, X, 2)
    probabilities = np.asarray(panel.predict(grid.reshape(-1, 2))).reshape(grid.shape[:2])
    axes.imshow(
        probabilities > 0.5,
        cmap=ListedColormap(CLASS_COLORS),
        vmin=0,
        vmax=1,
        alpha=0.22,
        extent=(x[0], x[-1], y[0], y[-1]),
        origin="lower",
        interpolation="none",
    )
    if probabilities.min() < 0.5 < probabilities.max():
        axes.contour(x, y, probabilities, levels=[0.5], colors=COLORS[-1], linewidths=1.2)
    is_few = len(points) <= _NUM_FEW
    for label, (color, marker) in enumerate(zip(CLASS_COLORS, CLASS_MARKERS, strict=True)):
        xs, ys = points[labels == label].T
        # Many points take less space as pixels than as vectors.
        axes.scatter(
            xs, ys, s=60 if is_few else 9, color=color, marker=marker, lw=0, rasterized=not is_few
        )
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), aspect="equal")
    axes.set_title(clean(title), loc="left", fontsize=10)
    axes.tick_params(length=3)


if __name__ == "__main__":
    corners = [(0, 0), (0, 1), (1, 0), (1, 1)]
    either = Classified(corners, [0, 1, 1, 1], lambda grid: grid.sum(1))
    print(to_svg(decision_regions({"OR": either})))
