"""How odd items are told from normal ones: a histogram of both with a threshold, and ROC curves."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.plots.curves import Points
from regard.plots.figure import COLOURS, style, to_svg
from regard.plots.labels import clean

NUM_BINS = 50

_SIDE = 3.6


def detection(
    numbers: Mapping[str, ArrayLike],
    curves: Mapping[str, Points],
    *,
    x_label: str,
    threshold: float | None = None,
) -> Figure:
    """Draw how numbers of groups are spread, and which share of the odd is found at which price.

    Args:
        numbers: For each group the number of each of its items, (B,).
        curves: For each way to tell them apart its ROC curve.
        x_label: What the numbers are.
        threshold: Beyond it an item counts as odd.
    """
    groups = {name: np.asarray(values, np.float64) for name, values in numbers.items()}
    if not groups or not all(map(len, groups.values())):
        raise DataError("There is nothing to draw: every group must hold at least one number.")
    with style():
        figure = Figure(figsize=(2.8 * _SIDE, _SIDE), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
        _draw_histogram(left, groups, threshold)
        left.set(xlabel=clean(x_label), ylabel="share of a group")
        for number, (name, points) in enumerate(curves.items()):
            alarms, found = zip(*points, strict=True)
            right.plot(
                alarms, found, color=COLOURS[number % len(COLOURS)], lw=1.8, label=clean(name)
            )
        right.plot([0, 1], [0, 1], ":", color=COLOURS[-1], lw=1, label="chance")
        right.set(xlabel="false alarms", ylabel="odd items found", aspect="equal")
        right.set(xlim=(0, 1), ylim=(0, 1.01))
        right.grid()
        right.legend(loc="lower right")
    return figure


def _draw_histogram(
    axes: Axes, groups: Mapping[str, NDArray[np.float64]], threshold: float | None
) -> None:
    # The last bin takes the few that lie far beyond.
    everything = np.concatenate(list(groups.values()))
    low, high = everything.min(), max(np.quantile(everything, 0.995), threshold or -np.inf)
    edges = np.linspace(low, high if high > low else low + 1, NUM_BINS + 1)
    for number, (name, values) in enumerate(groups.items()):
        heights = np.histogram(values.clip(edges[0], edges[-1]), edges)[0] / len(values)
        colour = COLOURS[number % len(COLOURS)]
        axes.stairs(heights, edges, fill=True, alpha=0.45, color=colour, label=clean(name))
    if threshold is not None:
        axes.axvline(threshold, color=COLOURS[-1], ls="--", label=f"threshold {threshold:.3g}")
    # Above: bars may be anywhere.
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=len(groups) + 1)


if __name__ == "__main__":
    usual = np.random.default_rng(0).gamma(3, size=300)
    drawn = detection(
        {"normal": usual, "odd": 2 + 2 * usual},
        {"by error": [(0, 0), (0.1, 0.7), (1, 1)]},
        x_label="error",
        threshold=5,
    )
    print(to_svg(drawn))
