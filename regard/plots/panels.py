"""Small multiples: several line plots side by side with one legend."""

import math
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.curves import plot_line
from regard.plots.figure import COLORS, hide_unused, style
from regard.plots.inputs import Points

_WIDTH, _HEIGHT = 9.6, 2.7
_LEGEND_COLUMNS = 5
_SCALES = ("linear", "log")


def panels(
    series: Mapping[str, Mapping[str, Points]],
    *,
    x_label: str,
    y_label: str,
    columns: int = 3,
    y_scale: str = "linear",
    marks: Mapping[str, tuple[str, float]] | None = None,
) -> Figure:
    """Plot one panel per title, with the same axes and one line per series.

    Series of the same name have the same colour in all panels.

    Args:
        series: Points by name for each panel, by its title. Points that are not finite are omitted.
        x_label: Label of the x axes.
        y_label: Label of the y axes.
        columns: Number of panels in a row.
        y_scale: `linear` or `log`.
        marks: A named vertical line by panel, such as the step at which training stopped.
    """
    if not series:
        raise DataError("There is nothing to plot: `series` must hold at least one panel.")
    if y_scale not in _SCALES:
        raise DataError(f"`y_scale` must be 'linear' or 'log', but is '{y_scale}'.")
    names = list(dict.fromkeys(name for lines in series.values() for name in lines))
    columns = min(columns, len(series))
    num_rows = math.ceil(len(series) / columns)
    with style():
        figure = Figure(figsize=(_WIDTH, _HEIGHT * num_rows + 0.5), layout="constrained")
        grid = figure.subplots(num_rows, columns, sharex=True, sharey=True, squeeze=False)
        handles = {}
        for axes, (title, lines) in zip(grid.flat, series.items(), strict=False):
            axes.set_title(clean(title), loc="left", fontweight="bold")
            axes.set_yscale(y_scale)
            if y_scale == "log":
                # The default labels are math, which is not parsed.
                axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axes.yaxis.set_minor_formatter(NullFormatter())
            axes.grid(axis="y")
            for name, points in lines.items():
                handles[clean(name)] = plot_line(axes, names.index(name), points)
            if marks and title in marks:
                name, x = marks[title]
                handles[clean(name)] = axes.axvline(x, color=COLORS[-1], ls="--", lw=1.2)
        hide_unused(grid, len(series))
        figure.supxlabel(clean(x_label), fontsize="medium")
        figure.supylabel(clean(y_label), fontsize="medium")
        if len(handles) > 1:
            figure.legend(
                handles.values(),
                handles,
                loc="outside upper left",
                ncols=min(_LEGEND_COLUMNS, len(handles)),
            )
    return figure


if __name__ == "__main__":
    from regard.plots.figure import to_svg

    curves = {f"rate {rate}": {"loss": [(x, rate**x) for x in range(9)]} for rate in (0.5, 0.8)}
    print(to_svg(panels(curves, x_label="step", y_label="loss")))
