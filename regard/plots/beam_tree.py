"""Beam trees of whole sentences: one column per step, prefixes from left to right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.text import Text

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, style
from regard.plots.inputs import label
from regard.plots.tree import STYLES, Branch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_COLUMNS = 11
"""Steps per strip; longer trees are continued below."""

MAX_TOKEN = 12
"""Maximum width of a token in terminal cells."""

_ROW_HEIGHT, _COLUMN_WIDTH = 0.44, 1.25
_LETTER = 0.09  # inches of a bold letter
_TEXT, _LINE = 0.3, (0.6, 4.4)  # half the width of a token in columns; line width at 0, and to add

_MEANINGS = {
    "result": "best hypothesis",
    "kept": "continues to an end",
    "pruned": "dropped later",
}


@dataclass(frozen=True)
class _Cell:
    """A branch with its position: column = step from 1, row from 0, and the row of its parent."""

    branch: Branch
    column: int
    row: int
    parent_row: int


def beam_tree(branches: Sequence[Branch], *, root: str = "<sos>", title: str = "") -> "Figure":
    """Plot a beam tree. The best hypothesis is the first row; lines never cross.

    The width of a line is the probability of its token, which is also written below the token.

    Args:
        branches: First branches of the tree; those on the way to the best hypothesis have the
            status `result`.
        root: Name of the root.
        title: Title of the plot.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    columns = list(_columns(branches))
    if not columns:
        raise DataError("There is nothing to plot: the tree must have at least one branch.")
    firsts = range(0, len(columns), MAX_COLUMNS)
    strips = [columns[first : first + MAX_COLUMNS] for first in firsts]
    # A strip begins with the last column of the one before.
    before = [[_Cell(Branch(root, 1.0, 1.0, "result"), 0, 0, 0)], *(strip[-1] for strip in strips)]
    heights = [max(map(len, [first, *strip])) for first, strip in zip(before, strips, strict=False)]
    num_columns = max(map(len, strips))
    with style():
        tokens = (label(cell.branch.token, MAX_TOKEN) for column in columns for cell in column)
        width = max(_COLUMN_WIDTH, _LETTER * max(map(cell_len, tokens)) / (2 * _TEXT))
        size = (width * (num_columns + 1), _ROW_HEIGHT * sum(heights) + 0.9)
        figure = Figure(figsize=size, layout="constrained")
        if title:
            figure.suptitle(label(title, 12 * (num_columns + 1)), x=0.01, ha="left", fontsize=11)
        grid = figure.subplots(len(strips), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, first, strip, height in zip(grid, before, strips, heights, strict=False):
            start = first[0].column
            axes.set_axis_off()
            axes.set(xlim=(start - 0.4, start + num_columns + 0.4), ylim=(height - 0.4, -0.6))
            _plot_strip(axes, first, strip)
        handles = [Line2D([], [], color=STYLES[name][0], lw=2.5) for name in _MEANINGS]
        figure.legend(
            handles, _MEANINGS.values(), loc="outside lower left", ncols=len(_MEANINGS), fontsize=9
        )
    return figure


def _columns(branches: Sequence[Branch]) -> Iterator[list[_Cell]]:
    """Yield the branches of each step, in the order of their parents and the best first."""
    cells = [
        _Cell(branch, 1, row, 0) for row, branch in enumerate(sorted(branches, key=_best_first))
    ]
    while cells:
        yield cells
        pairs = [
            (branch, cell.row)
            for cell in cells
            for branch in sorted(cell.branch.children, key=_best_first)
        ]
        cells = [
            _Cell(branch, cells[0].column + 1, row, parent_row)
            for row, (branch, parent_row) in enumerate(pairs)
        ]


def _best_first(branch: Branch) -> tuple[bool, float]:
    return branch.status != "result", -branch.total


def _plot_strip(axes: "Axes", first: Sequence[_Cell], columns: Sequence[Sequence[_Cell]]) -> None:
    for cell in first:
        _name(axes, cell, is_repeated=cell.column > 0)
    for cell in (cell for column in columns for cell in column):
        color, _, _ = STYLES[cell.branch.status]
        low, added = _LINE
        axes.plot(
            (cell.column - 1 + _TEXT, cell.column - 1 + 0.5, cell.column - _TEXT),
            (cell.parent_row, cell.row, cell.row),
            color=color,
            lw=low + added * cell.branch.probability,
            solid_joinstyle="round",
            solid_capstyle="butt",
            alpha=0.45 if cell.branch.status == "pruned" else 0.9,
            zorder=2 if cell.branch.status == "result" else 1,
        )
        _name(axes, cell)


def _name(axes: "Axes", cell: _Cell, *, is_repeated: bool = False) -> None:
    branch = cell.branch
    color = COLORS[-1] if is_repeated else STYLES[branch.status][0]
    weight = "bold" if branch.status == "result" else "normal"
    at: dict[str, Any] = {"ha": "center", "va": "center"}
    axes.text(
        cell.column,
        cell.row - 0.1,
        label(branch.token, MAX_TOKEN),
        color=color,
        fontsize=9,
        fontweight=weight,
        **at,
    )
    if cell.column and not is_repeated:
        note = f"{branch.probability:.2f} {branch.note}".strip()
        axes.text(cell.column, cell.row + 0.26, clean(note), color=color, fontsize=6.5, **at)


def tree_text(branches: Sequence[Branch], *, root: str = "<sos>") -> Text:
    """Return a beam tree for a `rich` console: branches below each other, the best one bold.

    Tokens without an alternative follow each other in one line. Numbers are the probabilities of
    tokens.

    Args:
        branches: First branches of the tree.
        root: Name of the root.
    """
    text = Text(clean(root))
    _add_lines(text, branches, margin="")
    return text


def _add_lines(text: Text, branches: Sequence[Branch], *, margin: str) -> None:
    ordered = sorted(branches, key=_best_first)
    for branch in ordered:
        is_last = branch is ordered[-1]
        text.append(f"\n{margin}{'└─' if is_last else '├─'}")
        while True:
            name = f" {label(branch.token)} {branch.probability:.2f}"
            note = f" {clean(branch.note)}" if branch.note else ""
            text.append(name + note, style="bold" if branch.status == "result" else "")
            if len(branch.children) != 1:
                break
            (branch,) = branch.children
        _add_lines(text, branch.children, margin=margin + ("   " if is_last else "│  "))


if __name__ == "__main__":
    from regard.plots.figure import to_svg

    leaves = (Branch("cat", 0.9, 0.36, "result"), Branch("dog", 0.1, 0.04, "pruned"))
    demo = (Branch("the", 0.6, 0.6), Branch("a", 0.4, 0.4, "result", leaves))
    print(tree_text(demo).plain)
    print(to_svg(beam_tree(demo)))
