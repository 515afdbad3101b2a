"""Search trees: hypotheses from left to right, with kept and pruned branches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.figure import COLORS, style
from regard.plots.inputs import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Status = Literal["result", "kept", "pruned"]

STYLES: dict[str, tuple[str, float, str]] = {
    "result": (COLORS[1], 2.6, "-"),
    "kept": (COLORS[0], 1.8, "-"),
    "pruned": (COLORS[-1], 1.0, ":"),
}
"""Colour, line width and dashes of a branch by its status."""

_ROW_HEIGHT, _LEVEL_WIDTH = 0.42, 1.5


@dataclass(frozen=True)
class Branch:
    """A token of a hypothesis with its continuations."""

    token: str
    probability: float
    """Probability of the token given the preceding ones, on the edge."""
    total: float
    """Probability of the hypothesis up to this token, below the token."""
    status: Status = "kept"
    """Whether the branch leads to the result, is continued or finished, or is dropped."""
    children: tuple["Branch", ...] = ()
    note: str = ""
    """Further text of the token, such as the rank of a finished hypothesis."""


def trees(panels: Mapping[str, tuple[Branch, ...]], *, root: str = "<sos>") -> "Figure":
    """Plot search trees side by side.

    Args:
        panels: First branches of each tree, by its title.
        root: Name of the root.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    if not panels or not all(panels.values()):
        raise DataError("There is nothing to plot: every tree must have at least one branch.")
    num_levels = max(_depth(branches) for branches in panels.values())
    num_rows = max(sum(map(_num_leaves, branches)) for branches in panels.values())
    with style():
        width = (_LEVEL_WIDTH * num_levels + 1.0) * len(panels)
        figure = Figure(figsize=(width, _ROW_HEIGHT * num_rows + 1.1), layout="constrained")
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, branches) in zip(grid, panels.items(), strict=True):
            axes.set_axis_off()
            axes.set(xlim=(-0.35, num_levels + 0.4), ylim=(num_rows - 0.4, -0.7))
            axes.set_title(clean(title), loc="left", fontweight="bold")
            _Painter(axes).paint(root, branches)
        handles = [
            Line2D([], [], color=color, lw=width, ls=dashes)
            for color, width, dashes in STYLES.values()
        ]
        figure.legend(handles, STYLES, loc="outside lower left", ncols=len(STYLES))
    return figure


class _Painter:
    """Painter of one tree; leaves take one row each, from top to bottom."""

    def __init__(self, axes: "Axes") -> None:
        self._axes = axes
        self._next_row = 0

    def paint(self, root: str, branches: tuple[Branch, ...]) -> None:
        y = self._children(branches, 0)
        self._name(0, y, root, color=COLORS[-1])

    def _branch(self, branch: Branch, level: int) -> float:
        if branch.children:
            y = self._children(branch.children, level)
        else:
            y = float(self._next_row)
            self._next_row += 1
        color, _, _ = STYLES[branch.status]
        self._name(level, y, f"{branch.token}\n{branch.total:.3g}", color=color)
        return y

    def _children(self, branches: tuple[Branch, ...], level: int) -> float:
        rows = [self._branch(branch, level + 1) for branch in branches]
        y = (rows[0] + rows[-1]) / 2
        for branch, row in zip(branches, rows, strict=True):
            color, width, dashes = STYLES[branch.status]
            ends = level + 0.24, level + 0.76
            self._axes.plot(ends, (y, row), color=color, lw=width, ls=dashes)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
            self._axes.text(
                sum(ends) / 2,
                (y + row) / 2,
                f"{branch.probability:g}",
                ha="center",
                va="center",
                fontsize=9,
                color=color,
                bbox=box,
            )
        return y

    def _name(self, x: float, y: float, text: str, *, color: str) -> None:
        name, *rest = text.split("\n")
        lines = "\n".join([label(name), *rest])
        self._axes.text(x, y, lines, ha="center", va="center", fontsize=9, color=color)


def _depth(branches: tuple[Branch, ...]) -> int:
    return 1 + max((_depth(branch.children) for branch in branches if branch.children), default=0)


def _num_leaves(branch: Branch) -> int:
    return sum(map(_num_leaves, branch.children)) or 1


def walk(branches: tuple[Branch, ...]) -> Iterator[Branch]:
    """Yield all branches of a tree, each before its continuations."""
    for branch in branches:
        yield branch
        yield from walk(branch.children)


if __name__ == "__main__":
    from regard.plots.figure import to_svg

    leaves = (Branch("cat", 0.9, 0.36, "result"), Branch("dog", 0.1, 0.04, "pruned"))
    demo = (Branch("the", 0.6, 0.6), Branch("a", 0.4, 0.4, "result", leaves))
    print(to_svg(trees({"beam 2": demo})))
