"""Figures of matplotlib as files: one look, one way to SVG and PNG."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure

from regard.core.errors import ConfigError
from regard.core.files import replacing, write_text
from regard.plots.labels import Markup

COLOURS = ("#2f7ed8", "#e0762f", "#259d6f", "#a95fc0", "#b8921f", "#76838f")
"""Colours of lines and bars, to be told apart on light and on dark pages, colour-blind or not."""

_INK = "#1f2933"
_FONTS = ("DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Arabic", "Noto Sans")
_STYLE = """\
.regard-figure{background:#fff;color:#1f2933}
.regard-figure text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif\
!important}
@media(prefers-color-scheme:dark){.regard-figure{background:#161b22;color:#e6edf3}}"""


@contextmanager
def style() -> Iterator[None]:
    """Give every figure drawn within the look of this package.

    Drawing is silent about letters that no installed font has: they are shown as boxes.
    """
    installed = set(font_manager.get_font_names())
    look: dict[Any, Any] = {
        "axes.axisbelow": True,
        "axes.edgecolor": _INK,
        "axes.labelcolor": _INK,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 12,
        "font.family": [font for font in _FONTS if font in installed],
        "font.size": 10,
        "grid.alpha": 0.15,
        "grid.color": _INK,
        "legend.frameon": False,
        "savefig.bbox": "tight",
        "savefig.dpi": 160,
        "savefig.pad_inches": 0.15,
        "svg.fonttype": "none",
        # The same figure is the same file, whenever it is drawn.
        "svg.hashsalt": "regard",
        # A dollar sign in a sentence is a dollar sign.
        "text.parse_math": False,
        "text.color": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
    }
    with matplotlib.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def to_svg(figure: Figure) -> Markup:
    """Write a figure as SVG that follows the light or dark scheme of the page it stands in."""
    buffer = io.StringIO()
    with style():
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :].replace(_INK, "currentColor")
    # Numbered names would clash with those of the next figure on the page; nothing refers to them.
    drawing = re.sub(r' id="[\w.]+_\d+"', "", drawing)
    drawing = drawing.replace("<svg", '<svg class="regard-figure" direction="ltr" role="img"', 1)
    return Markup(drawing.replace(">", f">\n<style>{_STYLE}</style>", 1))


def save(path: Path, figure: Figure) -> None:
    """Save a figure in the format that the file name ends in: `.png` or `.svg`."""
    if path.suffix not in (".png", ".svg"):
        raise ConfigError(f"`path` must end in .png or .svg, but is '{path}'.")
    if path.suffix == ".svg":
        write_text(path, to_svg(figure))
    else:
        save_png(path, figure)


def save_png(path: Path, figure: Figure) -> None:
    """Save a figure as PNG on a white ground."""
    with style(), replacing(path) as temporary:
        figure.savefig(temporary, format="png", facecolor="white")


if __name__ == "__main__":
    with style():
        demo = Figure(figsize=(3, 2))
        demo.add_subplot().plot([0, 1, 4, 9], color=COLOURS[0])
    print(to_svg(demo))
