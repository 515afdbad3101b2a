"""One map of weights between words, as SVG, HTML and PNG."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from rich.cells import cell_len

from regard.core.errors import ConfigError
from regard.core.files import write_text
from regard.plots.figure import save_png, style
from regard.plots.html import Section, figure, report
from regard.plots.labels import MAX_WIDTH, Markup, clean, escape, shorten
from regard.plots.weights import check_weights, greatest

_SLOPE = 50
_STYLE = """\
.regard-map{background:#fff;color:#1f2933;font:13px system-ui,-apple-system,"Segoe UI",Roboto,\
"Noto Sans",sans-serif}
.regard-map text{fill:currentColor}
.regard-map .title{font-size:15px;font-weight:600}
.regard-map .quiet{font-size:11px;opacity:.65}
.regard-map .frame{fill:none;stroke:currentColor;stroke-opacity:.2}
.regard-map .cell{fill:#0b4f8a}
.regard-map .cell:hover{stroke:#d9822b;stroke-width:2;fill-opacity:1}
.regard-map .value{font-size:10px;text-anchor:middle;pointer-events:none}
.regard-map .over{fill:#fff}
@media(prefers-color-scheme:dark){.regard-map{background:#161b22;color:#e6edf3}
.regard-map .cell{fill:#79c0ff}.regard-map .over{fill:#0d1117}}"""


def svg(
    weights: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    has_values: bool = False,
) -> Markup:
    """Draw a map as a self-contained SVG: source words on top, target words on the left.

    It follows the reader's light or dark scheme, and each cell tells its weight when pointed at.
    The darkest cell is the greatest weight; a legend says how great.

    Args:
        weights: (T, S).
        rows: Target words.
        columns: Source words.
        title: A line above the map.
        has_values: Whether cells show their weight.
    """
    array = check_weights(weights, rows, columns)
    place = _Place.of(rows, columns, title)
    parts = [
        f'<text class="title" x="16" y="28">{escape(title)}</text>' if title else "",
        *_source_labels(columns, place),
        *_target_labels(rows, place),
        *_cells(array, rows, columns, place=place),
        *(_values(array, place) if has_values else ()),
        _frame(array, place),
        *_legend(array, place),
    ]
    # `direction` keeps the labels at their places on a page that runs from right to left.
    return Markup(
        f'<svg class="regard-map" xmlns="http://www.w3.org/2000/svg" direction="ltr" role="img"'
        f' aria-label="{escape(title or "Attention weights")}" width="{place.width}"'
        f' height="{place.height}" viewBox="0 0 {place.width} {place.height}">\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(filter(None, parts)) + "\n</svg>\n"
    )


def save(
    path: Path,
    weights: ArrayLike,
    rows: Sequence[str],
    *,
    columns: Sequence[str],
    title: str = "",
) -> None:
    """Save a map in the format that the file name ends in: `.png`, `.svg` or `.html`.

    SVG and HTML show every script the reader's machine can show; a PNG shows a box for a letter
    that no font of this machine has.

    Args:
        path: The file to write.
        weights: (T, S).
        rows: Target words.
        columns: Source words.
        title: A line above the map.
    """
    if path.suffix not in (".png", ".svg", ".html"):
        raise ConfigError(f"`path` must end in .png, .svg or .html, but is '{path}'.")
    if path.suffix == ".png":
        with style():
            save_png(path, _draw(check_weights(weights, rows, columns), rows, columns, title=title))
        return
    drawing = svg(weights, rows, columns, title=title)
    if path.suffix == ".html":
        drawing = report(title or "Attention weights", [Section("", figure(drawing))])
    write_text(path, drawing)


@dataclass(frozen=True)
class _Place:
    """Where things stand on the canvas, in pixels."""

    left: int
    top: int
    cell: int
    width: int
    height: int

    @classmethod
    def of(cls, rows: Sequence[str], columns: Sequence[str], title: str) -> "_Place":
        cell = 26 if len(columns) <= 24 else 20
        left = max(80, max(map(_label_width, rows)) + 26)
        lean = max(map(_label_width, columns))
        top = round(lean * math.sin(math.radians(_SLOPE))) + (62 if title else 34)
        right = max(
            column * cell + cell + _label_width(word) * math.cos(math.radians(_SLOPE))
            for column, word in enumerate(columns)
        )
        title_width = 9.5 * cell_len(title)
        width = max(left + right, left + 190, 16 + title_width) + 16
        return cls(left, top, cell, round(width), top + len(rows) * cell + 52)


def _label(word: str) -> str:
    return shorten(clean(word), MAX_WIDTH)


def _label_width(word: str) -> int:
    return math.ceil(7.3 * cell_len(_label(word)))


def _source_labels(words: Sequence[str], place: _Place) -> Iterator[str]:
    x, y = place.left - 12, place.top - 8
    yield f'<text class="quiet" x="{x}" y="{y - 16}" text-anchor="end">source →</text>'
    for column, word in enumerate(words):
        turn = f"translate({place.left + (column + 0.5) * place.cell + 3:g} {y}) rotate(-{_SLOPE})"
        yield f'<text transform="{turn}">{escape(_label(word))}</text>'


def _target_labels(words: Sequence[str], place: _Place) -> Iterator[str]:
    x = place.left - 12
    yield f'<text class="quiet" x="{x}" y="{place.top - 8}" text-anchor="end">target ↓</text>'
    for row, word in enumerate(words):
        y = place.top + row * place.cell + place.cell / 2 + 4.5
        yield f'<text x="{x}" y="{y:g}" text-anchor="end">{escape(_label(word))}</text>'


def _cells(
    weights: NDArray[Any], rows: Sequence[str], columns: Sequence[str], *, place: _Place
) -> Iterator[str]:
    most = greatest(weights)
    for (row, column), weight in np.ndenumerate(weights):
        x, y = place.left + column * place.cell, place.top + row * place.cell
        # Isolated, so that the arrow stands between the words whichever way they run.
        words = f"\u2068{escape(rows[row])}\u2069 ← \u2068{escape(columns[column])}\u2069"
        yield (
            f'<rect class="cell" x="{x}" y="{y}" width="{place.cell}" height="{place.cell}"'
            f' fill-opacity="{_strength(weight, most):.3g}">'
            f"<title>{words}: {weight:.2f}</title></rect>"
        )


def _values(weights: NDArray[Any], place: _Place) -> Iterator[str]:
    most = greatest(weights)
    for (row, column), weight in np.ndenumerate(weights):
        x = place.left + (column + 0.5) * place.cell
        y = place.top + (row + 0.5) * place.cell + 3.5
        side = "value over" if _strength(weight, most) > 0.62 else "value"
        digits = f"{weight:.2f}".removeprefix("0")
        yield f'<text class="{side}" x="{x:g}" y="{y:g}">{digits}</text>'


def _frame(weights: NDArray[Any], place: _Place) -> str:
    height, width = (place.cell * count for count in weights.shape)
    return (
        f'<rect class="frame" x="{place.left - 0.5}" y="{place.top - 0.5}"'
        f' width="{width + 1}" height="{height + 1}" pointer-events="none"/>'
    )


def _legend(weights: NDArray[Any], place: _Place) -> Iterator[str]:
    y = place.height - 28
    for step in range(10):
        x = place.left + 16 + step * 12
        yield (
            f'<rect class="cell" x="{x}" y="{y}" width="12" height="10" pointer-events="none"'
            f' fill-opacity="{(step + 0.5) / 10:.2f}"/>'
        )
    yield f'<text class="quiet" x="{place.left}" y="{y + 9}">0</text>'
    most = f"{greatest(weights):.2f}"
    yield f'<text class="quiet" x="{place.left + 144}" y="{y + 9}">{most}</text>'


def _draw(
    weights: NDArray[Any], rows: Sequence[str], columns: Sequence[str], *, title: str
) -> Figure:
    num_rows, num_columns = weights.shape
    canvas = Figure(figsize=(min(40, 0.3 * num_columns + 1), min(40, 0.3 * num_rows + 1)))
    axes = canvas.add_subplot()
    image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=greatest(weights), aspect="equal")
    axes.set_xticks(range(num_columns), [_label(word) for word in columns])
    axes.set_yticks(range(num_rows), [_label(word) for word in rows])
    axes.tick_params(top=False, left=False, labeltop=True, bottom=False, labelbottom=False)
    for label in axes.get_xticklabels():
        label.set(rotation=_SLOPE, ha="left", rotation_mode="anchor")
    axes.spines[:].set(visible=True, color="#d5dbe1")
    axes.set_title(clean(title), loc="left", fontweight="bold", pad=12)
    canvas.colorbar(image, ax=axes, shrink=0.6, aspect=16, pad=0.03).outline.set_visible(False)
    return canvas


def _strength(weight: float, most: float) -> float:
    return max(0.0, weight / most)


if __name__ == "__main__":
    source = "the green house stands by the river .".split()
    target = "das grüne Haus steht am Fluss .".split()
    positions = np.linspace(0, len(source) - 1, len(target))
    distances = positions[:, None] - np.arange(len(source))
    demo = np.exp(-(distances**2))
    print(svg(demo / demo.sum(axis=1, keepdims=True), target, source, title="A straight line"))
