"""Curves of many models in one drawing, told apart by family."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from regard.plots.figure import COLORS, style

_BLUE, _ORANGE, _GREEN, _PURPLE, _, _GREY = COLORS

STYLES = {
    "sutskever2014": (_GREY, "-", "o"),
    "cho2014": (_GREY, "--", "s"),
    "bahdanau2015": (_ORANGE, "-", "o"),
    "luong2015": (_ORANGE, "--", "s"),
    "gehring2017": (_GREEN, "-", "o"),
    "vaswani2017-small": (_BLUE, "-", "o"),
    "vaswani2017-tiny": (_BLUE, "--", "s"),
    "modern-small": (_PURPLE, "-", "o"),
}
"""Colour, dash and mark. A colour is a family: fixed context, recurrent with attention,
convolutions, transformers of 2017 and of today; eight colours could not be told apart."""

# Beyond this, the marks of eight lines would hide one another.
_MAX_MARKS = 20


def draw(
    series: Mapping[str, Sequence[tuple[float, float]]], *, x_label: str, y_label: str
) -> Figure:
    """Draw one line for each model, and their names beside it in the order in which they end.

    Args:
        series: Points by the name of a model.
        x_label: What x counts.
        y_label: What y measures.
    """
    with style():
        figure = Figure(figsize=(7.2, 4.2))
        axes = figure.add_subplot()
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.grid(axis="y")
        for name in sorted(series, key=lambda name: series[name][-1][1], reverse=True):
            colour, dash, mark = STYLES[name]
            xs, ys = zip(*series[name], strict=True)
            marker = mark if len(xs) <= _MAX_MARKS else None
            axes.plot(xs, ys, dash, color=colour, marker=marker, ms=4, lw=1.6, label=name)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3.2)
    return figure
