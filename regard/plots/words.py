"""Plots of words: links of two sentences, padded batches, and probabilities of words."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, hide_unused, series_color, style
from regard.plots.inputs import label

_CELL_WIDTH, _CELL_HEIGHT = 0.95, 0.36
_WORD_WIDTH = 1.25
_PANEL_WIDTH, _BAR_HEIGHT = 2.5, 0.26
_MARKERS = "os^Dv*"


def links(source: Sequence[str], target: Sequence[str], pairs: Sequence[tuple[int, int]]) -> Figure:
    """Plot two sentences above each other with a line between aligned words.

    Args:
        source: Words of the upper sentence.
        target: Words of the lower sentence.
        pairs: Positions of aligned words in the source and in the target.
    """
    if not source or not target:
        raise DataError("Both sentences must have words, but one is empty.")
    num_columns = max(len(source), len(target))
    starts = [(num_columns - len(words)) / 2 for words in (source, target)]
    with style():
        figure = Figure(figsize=(_WORD_WIDTH * num_columns, 2.0))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(-0.6, num_columns - 0.4), ylim=(-0.35, 1.35))
        for y, start, words in zip((1.0, 0.0), starts, (source, target), strict=True):
            for position, word in enumerate(words):
                va = "bottom" if y else "top"
                axes.text(start + position, y, label(word), ha="center", va=va, fontsize=12)
        for first, second in pairs:
            axes.plot([starts[0] + first, starts[1] + second], [0.97, 0.03], color=COLORS[0])
    return figure


def token_rows(rows: Sequence[Sequence[str]], groups: Mapping[str, Sequence[str]]) -> Figure:
    """Plot a padded batch: one row per sentence, one cell per token.

    Args:
        rows: Tokens of each sentence, padded to one length.
        groups: Tokens to colour, by the name of their group in the legend.
    """
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or 0 in lengths:
        raise DataError(
            f"All rows must have the same number of tokens, but they have {sorted(lengths)}."
        )
    (num_columns,) = lengths
    colors = {
        token: series_color(number)
        for number, tokens in enumerate(groups.values())
        for token in tokens
    }
    with style():
        size = (_CELL_WIDTH * num_columns + 0.5, _CELL_HEIGHT * len(rows) + 0.8)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.set(xlim=(0, num_columns), ylim=(len(rows), 0), xlabel="position", ylabel="sentence")
        axes.set_xticks(*_numbered(num_columns))
        axes.set_yticks(*_numbered(len(rows)))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for y, row in enumerate(rows):
            for x, token in enumerate(row):
                _cell(axes, (x, y), token, color=colors.get(token))
        handles = [
            Rectangle((0, 0), 1, 1, color=series_color(number), alpha=0.3)
            for number in range(len(groups))
        ]
        names = [clean(name) for name in groups]
        figure.legend(handles, names, loc="outside upper left", ncols=len(names))
    return figure


def _numbered(num: int) -> tuple[list[float], list[str]]:
    """Return the centres of cells and their numbers from 1."""
    return [index + 0.5 for index in range(num)], [str(index + 1) for index in range(num)]


def _cell(axes: Axes, corner: tuple[int, int], token: str, *, color: str | None) -> None:
    box = Rectangle(corner, 1, 1, facecolor=color or "none", alpha=0.3 if color else 1)
    axes.add_patch(box)
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=COLORS[-1], lw=0.6))
    x, y = corner
    axes.text(x + 0.5, y + 0.5, label(token, 12), ha="center", va="center", fontsize=9)


def by_word(words: Sequence[str], series: Mapping[str, Sequence[float]], *, y_label: str) -> Figure:
    """Plot one value per word and series on a logarithmic axis, such as probabilities.

    Args:
        words: Words in order, on the x axis.
        series: A value above 0 for each word, by name.
        y_label: Label of the y axis.
    """
    for name, values in series.items():
        if len(values) != len(words) or min(values, default=0) <= 0:
            raise DataError(f"'{name}' must have a value above 0 for each of {len(words)} words.")
    with style():
        figure = Figure(figsize=(max(6.4, 0.9 * len(words)), 3.4), layout="constrained")
        axes = figure.add_subplot()
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(axis="y")
        for number, (name, values) in enumerate(series.items()):
            axes.plot(
                range(len(words)),
                values,
                color=series_color(number),
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=5,
                lw=1.4,
                label=clean(name),
            )
        axes.set_xticks(range(len(words)), [label(word) for word in words])
        axes.set_ylabel(clean(y_label))
        figure.legend(loc="outside upper left", ncols=4)
    return figure


def distributions(
    panels: Mapping[str, Mapping[str, float]], *, marked: Sequence[str], columns: int = 4
) -> Figure:
    """Plot distributions over words as horizontal bars, one panel each.

    Args:
        panels: Probabilities by word for each panel, by its title.
        marked: A word of each panel to highlight, such as the correct one.
        columns: Number of panels in a row.
    """
    if not panels or len(panels) != len(marked):
        raise DataError(
            "There must be one marked word per panel, and at least one panel, but there are "
            f"{len(marked)} words and {len(panels)} panels."
        )
    num_rows = -(-len(panels) // columns)
    num_bars = max(map(len, panels.values()))
    with style():
        height = (_BAR_HEIGHT * num_bars + 0.75) * num_rows
        columns = min(columns, len(panels))
        layout = ConstrainedLayoutEngine(h_pad=0.08)
        figure = Figure(figsize=(_PANEL_WIDTH * columns, height), layout=layout)
        grid = figure.subplots(num_rows, columns, squeeze=False, sharex=True)
        for axes, word, (title, probs) in zip(grid.flat, marked, panels.items(), strict=False):
            colors = [COLORS[1] if name == word else COLORS[0] for name in probs]
            bars = axes.barh(range(len(probs)), list(probs.values()), 0.62, color=colors)
            axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=9)
            axes.set_yticks(range(len(probs)), [label(name, 12) for name in probs])
            axes.set(xlim=(0, 1.3), ylim=(num_bars - 0.5, -0.5), xticks=(0, 0.5, 1))
            axes.tick_params(left=False)
            axes.set_title(clean(title), loc="left", fontsize=10)
        hide_unused(grid, len(panels))
        figure.supxlabel("probability", fontsize="medium")
    return figure


if __name__ == "__main__":
    from regard.plots.figure import to_svg

    print(to_svg(links(["I", "see"], ["ich", "sehe"], [(0, 0), (1, 1)])))
