"""One map of weights between words, for the terminal and as SVG."""

import math
import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from regard.core.errors import DataError
from regard.visual.labels import Markup, clean, escape, shorten

_MAX_LABEL = 24
_SHADES = ((0.75, "█"), (0.5, "▓"), (0.25, "▒"), (0.05, "░"))
# Dark to bright, evenly in lightness: a picture of its own on light and dark terminals alike.
_RAMP = ((0.0, (18, 26, 38)), (0.35, (29, 84, 128)), (0.7, (78, 167, 214)), (1.0, (240, 250, 255)))

_STYLE = """\
.regard-map{background:#fff;color:#1f2933;font:13px system-ui,-apple-system,"Segoe UI",\
Roboto,"Noto Sans",sans-serif}
.regard-map text{fill:currentColor}
.regard-map .quiet{opacity:.6;font-size:11px}
.regard-map .title{font-size:15px;font-weight:600}
.regard-map .ground{fill:none;stroke:currentColor;stroke-opacity:.18}
.regard-map .cell{fill:#0b4f8a}
.regard-map .cell:hover{stroke:#d9822b;stroke-width:2}
.regard-map .value{font-size:10px;text-anchor:middle;pointer-events:none}
.regard-map .over{fill:#fff}
@media(prefers-color-scheme:dark){.regard-map{background:#161b22;color:#e6edf3}
.regard-map .cell{fill:#79c0ff}.regard-map .over{fill:#0d1117}}"""


def check_weights(
    weights: ArrayLike, rows: Sequence[str], columns: Sequence[str]
) -> NDArray[Any]:
    """Return the weights as an array, or raise a `DataError` if the labels do not fit them.

    Args:
        weights: (T, S), finite numbers.
        rows: Target words.
        columns: Source words.
    """
    array = np.asarray(weights, dtype=float)
    if not rows or not columns:
        raise DataError(
            "A map needs at least one target word and one source word, "
            f"but there are {len(rows)} and {len(columns)}."
        )
    if array.shape != (len(rows), len(columns)):
        raise DataError(
            "`weights` must have one row per target word and one column per source word, "
            f"{(len(rows), len(columns))}, but has the shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise DataError("`weights` must be finite numbers, but some are infinite or NaN.")
    return array


def terminal(
    weights: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    width: int | None = None,
    has_values: bool = False,
) -> Text:
    """Draw a map for the terminal: coloured blocks, or shades where there is no colour.

    Each source word stands on a line of its own, joined to its column; a map wider than the
    terminal continues below. `terminal(...).plain` is the map as plain text.

    Args:
        weights: (T, S).
        rows: Target words.
        columns: Source words.
        width: Cells of a line; the terminal's own width if not given.
        has_values: Whether cells show their weight in hundredths instead of a shade.
    """
    array = check_weights(weights, rows, columns)
    top = _top(array)
    heads = [shorten(clean(word), _MAX_LABEL) for word in columns]
    names = [shorten(clean(word), _MAX_LABEL) for word in rows]
    margin = max(map(cell_len, names)) + 1
    cell_width = 3 if has_values else 2
    width = width or shutil.get_terminal_size((100, 24)).columns
    widest_head = max(map(cell_len, heads)) + 3
    per_part = max(1, (width - margin - widest_head) // cell_width)
    text = Text(no_wrap=True, overflow="ignore")
    for start in range(0, len(columns), per_part):
        part = slice(start, start + per_part)
        text.append(_staircase(heads[part], margin, cell_width))
        for name, values in zip(names, array[:, part], strict=True):
            text.append(" " * (margin - 1 - cell_len(name)) + name + " ")
            for value in values:
                text.append_text(_block(value, top, has_values=has_values))
            text.append("\n")
        text.append("\n")
    return text.append_text(_shade_legend(top, margin))


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

    Args:
        weights: (T, S).
        rows: Target words.
        columns: Source words.
        title: A line above the map.
        has_values: Whether cells show their weight.
    """
    array = check_weights(weights, rows, columns)
    heads = [shorten(clean(word), _MAX_LABEL) for word in columns]
    names = [shorten(clean(word), _MAX_LABEL) for word in rows]
    size = 26 if len(columns) <= 24 else 20
    left = max(76, max(map(_text_width, names)) + 22)
    top = max(map(_text_width, heads)) * math.sin(_SLOPE) + 28 + (30 if title else 0)
    overhang = max(
        (column + 0.5) * size + _text_width(head) * math.cos(_SLOPE)
        for column, head in enumerate(heads)
    )
    width = left + max(len(columns) * size, overhang, 200.0, _text_width(title) * 1.2 - left) + 16
    height = top + len(rows) * size + 52
    body = [
        _axes(heads, names, left=left, top=top, size=size),
        *_cells(array, rows, columns, has_values=has_values, left=left, top=top, size=size),
        _ramp_legend(_top(array), left=left, top=top + len(rows) * size + 20),
    ]
    if title:
        body.insert(0, f'<text class="title" x="16" y="28">{escape(title)}</text>')
    # `direction` keeps the anchors of labels where they are on a page that runs right to left.
    return Markup(
        f'<svg class="regard-map" xmlns="http://www.w3.org/2000/svg" direction="ltr" role="img" '
        f'aria-label="{escape(title or "attention map")}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n"
    )
