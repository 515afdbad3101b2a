"""Line plots, bar charts and histograms: losses over steps, scores over lengths, ROC curves."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, series_color, style, to_svg
from regard.plots.inputs import Points

_LEGEND_COLUMNS = 4
_MARKERS = "os^Dv*"
# Dashes distinguish lines when there are more lines than colours.
_DASHES = ("-", "--", ":")
# With more points than this, markers would hide the line.
_MAX_MARKERS = 40
_MAX_DENSE_RANGE = 3e3
_NUM_BINS = 50
_PERCENT = 100.0
_SIDE = 3.6


def loss_curve(
    rows: Sequence[Mapping[str, Any]], *, score: str = "bleu", label: str = "", title: str = ""
) -> Figure:
    """Plot training loss, validation loss and a validation score over steps.

    Args:
        rows: Rows of a training log with `kind` ("train" or "valid"), `step` and values such as
            `loss`.
        score: Name of the score in validation rows; if absent, only losses are plotted.
        label: Name of the score in the plot; as in the rows if not given.
        title: Title of the plot.
    """
    losses = {
        # Without label smoothing, so that it is comparable with the validation loss.
        "training loss": column(rows, "train", "nll") or column(rows, "train", "loss"),
        "validation loss": column(rows, "valid", "loss"),
    }
    scores = {f"validation {label or score}": column(rows, "valid", score)}
    figure = lines(
        {name: points for name, points in losses.items() if points},
        x_label="step",
        y_label="loss",
        title=title,
        right={name: points for name, points in scores.items() if points},
        right_label=label or score,
    )
    for axes in figure.axes[1:]:
        limit_score(axes, [value for points in scores.values() for _, value in points])
    figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure


def lines(
    series: Mapping[str, Points],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    right: Mapping[str, Points] | None = None,
    right_label: str = "",
    dots: Mapping[str, Points] | None = None,
    shaded: tuple[str, float, float] | None = None,
) -> Figure:
    """Plot one line per series, with a legend if there are several.

    Args:
        series: Points by name. Points that are not finite are omitted.
        x_label: Label of the x axis.
        y_label: Label of the y axis.
        title: Title of the plot.
        right: Further series, on a second y axis on the right.
        right_label: Label of the second y axis.
        dots: Points by name without a line, such as the data of a regression.
        shaded: Name and bounds of a range of x to highlight, such as the lengths in training.
    """
    right, dots = right or {}, dots or {}
    if not any(map(_finite, [*series.values(), *right.values()])):
        raise DataError("There is nothing to plot: `series` must hold at least one finite point.")
    with style():
        figure = Figure(figsize=(7.2, 3.6))
        axes = figure.add_subplot()
        axes.set(xlabel=clean(x_label), ylabel=clean(y_label))
        axes.grid(axis="y")
        handles = [plot_line(axes, number, points) for number, points in enumerate(series.values())]
        if right:
            right_axes = axes.twinx()
            right_axes.set_ylabel(clean(right_label))
            numbers = range(len(series), len(series) + len(right))
            handles += map(plot_line, [right_axes] * len(right), numbers, right.values())
        handles += [_dots(axes, points) for points in dots.values()]
        names = [clean(name) for name in (*series, *right, *dots)]
        if shaded:
            name, *ends = shaded
            handles.append(axes.axvspan(*ends, color=COLORS[-1], alpha=0.15, lw=0, zorder=0))
            names.append(clean(name))
        num_legend_rows = 0
        if len(names) > 1:
            axes.legend(
                handles, names, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=_LEGEND_COLUMNS
            )
            num_legend_rows = math.ceil(len(names) / _LEGEND_COLUMNS)
        _set_title(axes, title, num_legend_rows)
    return figure


def scaling(series: Mapping[str, Points], *, x_label: str, y_label: str, title: str = "") -> Figure:
    """Plot one line per series over data or compute on a logarithmic axis.

    Args:
        series: Points by name; x is a number of examples or of operations, greater than 0.
        x_label: Label of the x axis.
        y_label: Label of the y axis.
        title: Title of the plot.
    """
    smallest = min((x for points in series.values() for x, _ in points), default=1)
    if smallest <= 0:
        raise DataError(f"On a logarithmic axis, x must be above 0, but one is {smallest:g}.")
    figure = lines(series, x_label=x_label, y_label=y_label, title=title)
    axes = figure.axes[0]
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    # Over a few powers of ten, also put ticks at 2 and 5: 1k, 2k, 5k, 10k.
    ticks = (1.0, 2.0, 5.0) if high / low < _MAX_DENSE_RANGE else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=ticks))
    axes.xaxis.set_major_formatter(EngFormatter(sep="\N{HAIR SPACE}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    return figure


def bars(values: Mapping[str, float], *, x_label: str = "", title: str = "") -> Figure:
    """Plot one horizontal bar per name, from top to bottom, labelled with its value.

    Args:
        values: Values by name.
        x_label: Label of the x axis.
        title: Title of the plot.
    """
    if not values:
        raise DataError("There is nothing to plot: `values` must hold at least one bar.")
    with style():
        figure = Figure(figsize=(6.4, 0.32 * len(values) + 0.6))
        axes = figure.add_subplot()
        container = axes.barh(range(len(values)), list(values.values()), 0.62, color=COLORS[0])
        axes.bar_label(container, fmt="%.1f", padding=4)
        axes.set_yticks(range(len(values)), [clean(name) for name in values])
        axes.invert_yaxis()
        axes.margins(x=0.12, y=0.02)
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel(clean(x_label))
        _set_title(axes, title)
    return figure


def detection(
    scores: Mapping[str, ArrayLike],
    curves: Mapping[str, Points],
    *,
    x_label: str,
    threshold: float | None = None,
) -> Figure:
    """Plot the distribution of anomaly scores per group, and the ROC curves of detectors.

    Args:
        scores: Scores of the items of each group, (B,).
        curves: ROC curve of each detector.
        x_label: Label of the scores.
        threshold: Threshold above which an item counts as an anomaly.
    """
    groups = {name: np.asarray(values, np.float64) for name, values in scores.items()}
    if not groups or not all(map(len, groups.values())):
        raise DataError("There is nothing to plot: every group must hold at least one score.")
    with style():
        figure = Figure(figsize=(2.8 * _SIDE, _SIDE), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
        _histogram(left, groups, threshold)
        left.set(xlabel=clean(x_label), ylabel="share of a group")
        for number, (name, points) in enumerate(curves.items()):
            x, y = zip(*points, strict=True)
            right.plot(x, y, color=series_color(number), lw=1.8, label=clean(name))
        right.plot([0, 1], [0, 1], ":", color=COLORS[-1], lw=1, label="chance")
        right.set(xlabel="false alarms", ylabel="anomalies found", aspect="equal")
        right.set(xlim=(0, 1), ylim=(0, 1.01))
        right.grid()
        right.legend(loc="lower right")
    return figure


def plot_line(axes: Axes, number: int, points: Points) -> Any:
    """Plot one line in the colour, dashes and markers of its number; return its handle."""
    finite = _finite(points)
    has_markers = len(finite) <= _MAX_MARKERS
    (line,) = axes.plot(
        *np.reshape(finite, (-1, 2)).T,
        _DASHES[number // len(COLORS) % len(_DASHES)],
        color=series_color(number),
        linewidth=1.8,
        marker=_MARKERS[number % len(_MARKERS)] if has_markers else None,
        markersize=4,
    )
    return line


def column(
    rows: Sequence[Mapping[str, Any]], kind: str, key: str, *, x: str = "step"
) -> list[tuple[float, float]]:
    """Return the values of a field of a training log, with the step or the value of `x` first."""
    return [(row[x], row[key]) for row in rows if row.get("kind") == kind and {key, x} <= {*row}]


def limit_score(axes: Axes, values: Sequence[float]) -> None:
    """Limit an axis to scores that are possible; most are percentages, none are shown below 0."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite or min(finite) < 0 or max(finite) > _PERCENT:
        return
    low, high = axes.get_ylim()
    if len({*finite}) == 1:
        # A single value has no scale of its own.
        low, high = 0.0, 1.0 if 0 < finite[0] <= 1 else _PERCENT
    margin = 0.03 * (high - low)  # for whole markers
    axes.set_ylim(max(low, 0.0) - margin, min(high, _PERCENT) + margin)


def _finite(points: Points) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _dots(axes: Axes, points: Points) -> Any:
    # The last colour is grey.
    x, y = np.reshape(_finite(points), (-1, 2)).T
    return axes.scatter(x, y, s=16, color=COLORS[-1], alpha=0.7, linewidths=0)


def _set_title(axes: Axes, title: str, num_legend_rows: int = 0) -> None:
    if title:
        pad = 12 + 17 * num_legend_rows
        axes.set_title(clean(title), loc="left", fontweight="bold", pad=pad)


def _histogram(
    axes: Axes, groups: Mapping[str, NDArray[np.float64]], threshold: float | None
) -> None:
    # The last bin also counts the few larger values.
    scores = np.concatenate(list(groups.values()))
    low, high = scores.min(), max(np.quantile(scores, 0.995), threshold or -np.inf)
    edges = np.linspace(low, high if high > low else low + 1, _NUM_BINS + 1)
    for number, (name, values) in enumerate(groups.items()):
        heights = np.histogram(values.clip(edges[0], edges[-1]), edges)[0] / len(values)
        color = series_color(number)
        axes.stairs(heights, edges, fill=True, alpha=0.45, color=color, label=clean(name))
    if threshold is not None:
        axes.axvline(threshold, color=COLORS[-1], ls="--", label=f"threshold {threshold:.3g}")
    # The legend is above the plot, as bars may be anywhere.
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=len(groups) + 1)


if __name__ == "__main__":
    rows = [{"kind": "train", "step": s, "loss": 1 + 4 / (1 + s / 300)} for s in range(0, 5000, 50)]
    rows += [
        {"kind": "valid", "step": s, "loss": 1.4 + 4 / (1 + s / 300), "bleu": 40 - 4e4 / (s + 900)}
        for s in range(500, 5000, 500)
    ]
    print(to_svg(loss_curve(rows, title="Example")))
