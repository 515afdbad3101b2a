"""Training curves of several runs: loss, validation scores, learning rate and throughput."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator

from regard.core.errors import DataError
from regard.plots.curves import column, limit_score, plot_line
from regard.plots.figure import COLORS, hide_unused, style, to_svg
from regard.plots.inputs import Points, label

Rows = Sequence[Mapping[str, Any]]
"""Rows of a training log."""

_WIDTH, _HEIGHT = 4.9, 2.7
_COLUMNS = 2
_LEGEND_COLUMNS = 3
_NAME_WIDTH = 40


@dataclass(frozen=True)
class _Panel:
    """One plot with a line per run; a run without points has none."""

    title: str
    lines: Sequence[Points]
    thin_lines: Sequence[Points] = ()
    is_score: bool = False
    is_in_thousands: bool = False

    @property
    def is_empty(self) -> bool:
        return not any(self.lines) and not any(self.thin_lines)


def training_curves(
    runs: Mapping[str, Rows], *, scores: Mapping[str, str] | None = None, x: str = "step"
) -> Figure:
    """Plot the training curves of several runs in one figure, one colour per run.

    Args:
        runs: Rows of the training log of each run, by its name.
        scores: Validation scores: their titles by their names in the rows.
        x: Field of the rows for the x axis: `step` or `seconds`.
    """
    panels = [
        panel for panel in _panels(list(runs.values()), scores or {}, x) if not panel.is_empty
    ]
    if not panels:
        raise DataError("There is nothing to plot: the training logs hold no numbers yet.")
    num_columns = min(_COLUMNS, len(panels))
    num_rows = math.ceil(len(panels) / num_columns)
    with style():
        size = (_WIDTH * num_columns, _HEIGHT * num_rows + 0.5)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(num_rows, num_columns, sharex=True, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            _plot(axes, panel)
            axes.set_xlabel(x)
        hide_unused(grid, len(panels))
        _add_legend(figure, list(runs))
    return figure


def _panels(logs: Sequence[Rows], scores: Mapping[str, str], x: str) -> list[_Panel]:
    def lines(kind: str, key: str) -> list[Points]:
        return [column(rows, kind, key, x=x) for rows in logs]

    # Without label smoothing, so that it is comparable with the validation loss.
    training = [
        nll or loss for nll, loss in zip(lines("train", "nll"), lines("train", "loss"), strict=True)
    ]
    return [
        _Panel("Loss", lines("valid", "loss"), thin_lines=training),
        *(_Panel(title, lines("valid", name), is_score=True) for name, title in scores.items()),
        _Panel("Learning rate", lines("train", "learning_rate")),
        _Panel(
            "Tokens or examples per second",
            lines("train", "tokens_per_second"),
            is_in_thousands=True,
        ),
    ]


def _plot(axes: Axes, panel: _Panel) -> None:
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.grid(axis="y")
    for number, points in enumerate(panel.thin_lines):
        thin = plot_line(axes, number, points)
        # A single point is visible by its marker only.
        thin.set(linewidth=1, alpha=0.5, marker=thin.get_marker() if len(points) == 1 else "")
    for number, points in enumerate(panel.lines):
        plot_line(axes, number, points)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(labelbottom=True)
    if panel.is_in_thousands:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    if panel.is_score:
        limit_score(axes, [value for points in panel.lines for _, value in points])
    if any(panel.lines) and any(panel.thin_lines):
        grey = COLORS[-1]
        handles = [Line2D([], [], color=grey, lw=1, alpha=0.5), Line2D([], [], color=grey, lw=1.8)]
        axes.legend(handles, ("training", "validation"), loc="upper right", fontsize="small")


def _add_legend(figure: Figure, names: Sequence[str]) -> None:
    """Add the names of the runs above the plots; a single one is the title."""
    if len(names) == 1:
        figure.suptitle(label(names[0], 2 * _NAME_WIDTH), x=0.01, ha="left", fontweight="bold")
        return
    handles = [plot_line(Figure().add_subplot(), number, []) for number in range(len(names))]
    figure.legend(
        handles,
        [label(name, _NAME_WIDTH) for name in names],
        loc="outside upper left",
        ncols=min(_LEGEND_COLUMNS, len(names)),
    )


if __name__ == "__main__":
    demo = {
        f"run {rate}": [
            {"kind": "train", "step": step, "loss": 1 + 4 * rate**step, "tokens_per_second": 9e3}
            for step in range(1, 30)
        ]
        for rate in (0.7, 0.9)
    }
    print(to_svg(training_curves(demo)))
