"""Heat maps of attention weights between words as SVG, HTML, PNG and PDF, and of matrices."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.cells import cell_len

from regard.core.errors import DataError
from regard.core.files import write_text
from regard.core.terminal import clean
from regard.plots import figure
from regard.plots.html import page
from regard.plots.inputs import Markup, check_weights, escape, find_vmax, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_CELLS = 10_000
"""Number of cells above which cells that would be invisible are left out of an SVG."""

_SLOPE = 50
_FAINT = 0.02
_MANY = 120
_PANEL = 3.1
_FRAME = "#d5dbe1"
_STYLE = Path(__file__).with_name("heatmap.css").read_text(encoding="utf-8").strip()


def svg(
    weights: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    has_values: bool = False,
    divider: int = 0,
) -> Markup:
    """Render a heat map as a self-contained SVG: source words on top, target words on the left.

    It follows the light or dark colour scheme of the browser, and each cell shows its weight on
    hover. The darkest cell has the largest weight, which is shown in the legend. Negative weights
    are red. In maps of more than `MAX_CELLS` cells, those that would be invisible are left out.

    Args:
        weights: (T, S).
        rows: Target words.
        columns: Source words.
        title: Title of the plot.
        has_values: Whether cells show their weight.
        divider: Number of columns before a vertical line; 0 = no line.
    """
    array = check_weights(weights, rows, columns)
    layout = _Layout.of(rows, columns, title)
    parts = [
        f'<text class="title" x="16" y="28">{escape(title)}</text>' if title else "",
        *_source_labels(columns, layout),
        *_target_labels(rows, layout),
        *_cells(array, rows, columns, layout=layout),
        *(_values(array, layout) if has_values else ()),
        _frame(array, layout),
        _divider(divider, array, layout) if divider else "",
        *_legend(array, layout),
    ]
    # `direction` keeps the positions of labels on right-to-left pages.
    return Markup(
        f'<svg class="regard-map" xmlns="http://www.w3.org/2000/svg" direction="ltr" role="img"'
        f' aria-label="{escape(title or "Attention weights")}" width="{layout.width}"'
        f' height="{layout.height}" viewBox="0 0 {layout.width} {layout.height}">\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(filter(None, parts)) + "\n</svg>\n"
    )


def save(
    path: Path,
    weights: ArrayLike,
    rows: Sequence[str],
    *,
    columns: Sequence[str],
    title: str = "",
    divider: int = 0,
) -> None:
    """Save a heat map in the format given by the suffix: `.png`, `.svg`, `.pdf` or `.html`.

    SVG and HTML use the fonts of the reader; PNG and PDF show boxes for characters that no font
    installed here has.

    Args:
        path: File to write.
        weights: (T, S).
        rows: Target words.
        columns: Source words.
        title: Title of the plot.
        divider: Number of columns before a vertical line; 0 = no line.
    """
    suffix = figure.check_path(path)
    if suffix in (".png", ".pdf"):
        with figure.style():
            plot = _plot(check_weights(weights, rows, columns), rows, columns, title=title)
            if divider:
                plot.axes[0].axvline(divider - 0.5, color=figure.COLORS[-1], lw=1)
            figure.save(path, plot)
        return
    markup = svg(weights, rows, columns, title=title, divider=divider)
    is_page = suffix == ".html"
    write_text(path, page(markup, title or "Attention weights") if is_page else markup)


def matrices(
    panels: Mapping[str, ArrayLike],
    *,
    x_label: str,
    y_label: str,
    aspect: float = 1.0,
    columns: int = 3,
) -> "Figure":
    """Plot matrices as panels, each with its own colour scale.

    The scale is white to blue for non-negative matrices, otherwise red over white to blue.

    Args:
        panels: (L, K) by title; a title may be empty.
        x_label: Label of the columns.
        y_label: Label of the rows.
        aspect: Width of a panel divided by its height.
        columns: Number of panels in a row.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    tables = {title: _check_table(table) for title, table in panels.items()}
    if not tables:
        raise DataError("There is nothing to plot: `panels` must hold at least one table.")
    with figure.style():
        width = _PANEL * aspect + 0.9
        columns = min(columns, len(tables))
        num_rows = math.ceil(len(tables) / columns)
        size = (width * columns, (_PANEL + 0.6) * num_rows)
        canvas = Figure(figsize=size, layout="constrained")
        grid = canvas.subplots(num_rows, columns, squeeze=False)
        for axes, (title, table) in zip(grid.flat, tables.items(), strict=False):
            vmax = find_vmax(np.abs(table))
            is_signed = bool(table.min() < 0)
            image = axes.imshow(
                table,
                cmap="RdBu" if is_signed else "Blues",
                vmin=-vmax if is_signed else 0,
                vmax=vmax,
                aspect="auto",
                interpolation="nearest",
            )
            axes.set_box_aspect(1 / aspect)
            axes.set_title(clean(title), loc="left", fontsize=11)
            axes.set_xlabel(clean(x_label))
            axes.tick_params(length=3)
            axes.spines[:].set(visible=True, color=_FRAME)
            bar = canvas.colorbar(image, ax=axes, shrink=0.8, aspect=24, pad=0.03)
            bar.outline.set_visible(False)
            bar.ax.tick_params(length=0)
            bar.ax.yaxis.set_major_locator(MaxNLocator(5))
        for axes in grid[:, 0]:
            axes.set_ylabel(clean(y_label))
        figure.hide_unused(grid, len(tables))
    return canvas


@dataclass(frozen=True)
class _Layout:
    """Sizes and positions in the SVG, in pixels."""

    left: int
    top: int
    cell: int
    width: int
    height: int

    @classmethod
    def of(cls, rows: Sequence[str], columns: Sequence[str], title: str) -> "_Layout":
        cell = 26 if len(columns) <= 24 else 20
        left = max(80, max(map(_label_width, rows)) + 26)
        longest = max(map(_label_width, columns))
        top = round(longest * math.sin(math.radians(_SLOPE))) + (62 if title else 34)
        right = max(
            column * cell + cell + _label_width(word) * math.cos(math.radians(_SLOPE))
            for column, word in enumerate(columns)
        )
        title_width = 9.5 * cell_len(title)
        width = max(left + right, left + 190, 16 + title_width) + 16
        return cls(left, top, cell, round(width), top + len(rows) * cell + 52)


def _label_width(word: str) -> int:
    return math.ceil(7.3 * cell_len(label(word)))


def _source_labels(words: Sequence[str], layout: _Layout) -> Iterator[str]:
    x, y = layout.left - 12, layout.top - 8
    yield f'<text class="quiet" x="{x}" y="{y - 16}" text-anchor="end">source →</text>'
    for column, word in enumerate(words):
        transform = (
            f"translate({layout.left + (column + 0.5) * layout.cell + 3:g} {y}) rotate(-{_SLOPE})"
        )
        yield f'<text transform="{transform}">{escape(label(word))}</text>'


def _target_labels(words: Sequence[str], layout: _Layout) -> Iterator[str]:
    x = layout.left - 12
    yield f'<text class="quiet" x="{x}" y="{layout.top - 8}" text-anchor="end">target ↓</text>'
    for row, word in enumerate(words):
        y = layout.top + row * layout.cell + layout.cell / 2 + 4.5
        yield f'<text x="{x}" y="{y:g}" text-anchor="end">{escape(label(word))}</text>'


def _cells(
    weights: NDArray[Any], rows: Sequence[str], columns: Sequence[str], *, layout: _Layout
) -> Iterator[str]:
    opacities = _opacities(weights)
    is_large = weights.size > MAX_CELLS
    for (row, column), weight in np.ndenumerate(weights):
        if is_large and opacities[row, column] < _FAINT:
            continue
        x, y = layout.left + column * layout.cell, layout.top + row * layout.cell
        # Bidirectional isolates keep the arrow between the words in any script.
        words = f"\u2068{escape(rows[row])}\u2069 ← \u2068{escape(columns[column])}\u2069"
        yield (
            f'<rect class="{_css_class(weight)}" x="{x}" y="{y}"'
            f' width="{layout.cell}" height="{layout.cell}"'
            f' fill-opacity="{opacities[row, column]:.3g}">'
            f"<title>{words}: {weight:.2f}</title></rect>"
        )


def _values(weights: NDArray[Any], layout: _Layout) -> Iterator[str]:
    opacities = _opacities(weights)
    for (row, column), weight in np.ndenumerate(weights):
        x = layout.left + (column + 0.5) * layout.cell
        y = layout.top + (row + 0.5) * layout.cell + 3.5
        css_class = "value over" if opacities[row, column] > 0.62 else "value"
        digits = f"{weight:.2f}".replace("0.", ".", 1)
        yield f'<text class="{css_class}" x="{x:g}" y="{y:g}">{digits}</text>'


def _frame(weights: NDArray[Any], layout: _Layout) -> str:
    height, width = (layout.cell * count for count in weights.shape)
    return (
        f'<rect class="frame" x="{layout.left - 0.5}" y="{layout.top - 0.5}"'
        f' width="{width + 1}" height="{height + 1}" pointer-events="none"/>'
    )


def _divider(column: int, weights: NDArray[Any], layout: _Layout) -> str:
    x, height = layout.left + column * layout.cell, layout.cell * len(weights)
    return (
        f'<line class="divider" x1="{x}" x2="{x}" y1="{layout.top}" y2="{layout.top + height}"'
        f' pointer-events="none"/>'
    )


def _legend(weights: NDArray[Any], layout: _Layout) -> Iterator[str]:
    y = layout.height - 28
    is_signed = bool(weights.min() < 0)
    vmax = f"{find_vmax(weights):.2f}"
    x = layout.left
    yield f'<text class="quiet" x="{x}" y="{y + 9}">{f"−{vmax}" if is_signed else "0"}</text>'
    x += 14 + 7 * len(vmax) if is_signed else 16
    for step in range(10):
        strength = (2 * step - 9) / 9 if is_signed else (step + 0.5) / 10
        yield (
            f'<rect class="{_css_class(strength)}" x="{x + step * 12}" y="{y}" width="12"'
            f' height="10" pointer-events="none" fill-opacity="{abs(strength):.2f}"/>'
        )
    yield f'<text class="quiet" x="{x + 128}" y="{y + 9}">{vmax}</text>'


def _css_class(weight: float) -> str:
    return "cell" if weight >= 0 else "cell negative"


def _plot(
    weights: NDArray[Any], rows: Sequence[str], columns: Sequence[str], *, title: str
) -> "Figure":
    from matplotlib.figure import Figure

    num_rows, num_columns = weights.shape
    canvas = Figure(figsize=(min(40, 0.3 * num_columns + 1), min(40, 0.3 * num_rows + 1)))
    axes = canvas.add_subplot()
    image = axes.imshow(weights, aspect="equal", **color_scale(weights))
    axes.set_xticks(range(num_columns), [label(word) for word in columns])
    axes.set_yticks(range(num_rows), [label(word) for word in rows])
    axes.tick_params(top=False, left=False, labeltop=True, bottom=False, labelbottom=False)
    # The cells of a large map are smaller than letters of the usual size.
    is_large = max(num_rows, num_columns) > _MANY
    axes.tick_params(labelsize=7 if is_large else 10)
    for tick in axes.get_xticklabels():
        tick.set(rotation=90 if is_large else _SLOPE, ha="left", rotation_mode="anchor")
        if is_large:
            tick.set(va="center")
    axes.spines[:].set(visible=True, color=_FRAME)
    axes.set_title(clean(title), loc="left", fontweight="bold", pad=12)
    shrink = min(0.6, 18 / num_rows)
    bar = canvas.colorbar(image, ax=axes, shrink=shrink, aspect=16, pad=0.03)
    bar.outline.set_visible(False)
    return canvas


def color_scale(weights: NDArray[Any]) -> dict[str, Any]:
    """Return the colours of matplotlib: white to blue; from red if some weights are negative."""
    vmax, is_signed = find_vmax(weights), bool(weights.min() < 0)
    return {"cmap": "RdBu" if is_signed else "Blues", "vmin": -vmax * is_signed, "vmax": vmax}


def _opacities(weights: NDArray[Any]) -> NDArray[Any]:
    opacities: NDArray[Any] = np.abs(weights) / find_vmax(weights)
    return opacities


def _check_table(table: ArrayLike) -> NDArray[Any]:
    array = np.asarray(table, dtype=float)
    if array.ndim != 2 or not array.size:
        raise DataError(f"A table must have rows and columns, but has the shape {array.shape}.")
    if not np.isfinite(array).all():
        raise DataError("A table must hold finite numbers, but some are infinite or NaN.")
    return array


if __name__ == "__main__":
    source, target = "the green house .".split(), "das grüne Haus .".split()
    print(svg(np.eye(4) * 0.8 + 0.05, target, source, title="Monotonic alignment"))
    print(figure.to_svg(matrices({"identity": np.eye(4)}, x_label="keys", y_label="queries")))
