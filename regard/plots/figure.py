"""Matplotlib figures with one style and one palette, saved as SVG, PNG or HTML."""

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure

from regard.core.files import check_suffix, replacing, write_text
from regard.plots.html import page
from regard.plots.inputs import Markup

COLOURS = ("#2f7ed8", "#e0762f", "#259d6f", "#a95fc0", "#b8921f", "#76838f")
"""Colours of lines and bars: distinct on light and dark pages and for colour-blind readers."""

_INK = "#1f2933"
_FONTS = ("DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Arabic", "Noto Sans")
_STYLE = Path(__file__).with_name("figure.css").read_text(encoding="utf-8").strip()


def colour(number: int) -> str:
    """Return the colour of a series or group, counted from 0."""
    return COLOURS[number % len(COLOURS)]


@contextmanager
def style() -> Iterator[None]:
    """Apply the package's style to figures made inside the block.

    Letters that no installed font has are shown as boxes, without a warning.
    """
    installed = set(font_manager.get_font_names())
    fonts = [font for font in _FONTS if font in installed]
    with matplotlib.rc_context({**_settings(), "font.family": fonts}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


@cache
def _settings() -> Mapping[Any, Any]:
    path = Path(__file__).with_name("regard.mplstyle")
    return matplotlib.rc_params_from_file(path, use_default_template=False)


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


def save(path: Path, figure: Figure, *, title: str = "") -> None:
    """Save a figure in the format that the file name ends in: `.png`, `.svg` or `.html`.

    Args:
        path: The file to write.
        figure: The plot; a PNG is on white.
        title: The heading of an HTML page.
    """
    check_path(path)
    if path.suffix == ".png":
        with style(), replacing(path) as temporary:
            figure.savefig(temporary, format="png", facecolor="white")
    else:
        drawing = to_svg(figure)
        write_text(path, drawing if path.suffix == ".svg" else page(drawing, title or "Images"))


def check_path(path: Path, name: str = "path") -> None:
    """Raise a `ConfigError` if a file's name ends in nothing that `save` can write.

    Args:
        path: The file.
        name: The setting or option that the message names.
    """
    check_suffix(path, name, ".png", ".svg", ".html")


if __name__ == "__main__":
    with style():
        demo = Figure(figsize=(3, 2))
        demo.add_subplot().plot([0, 1, 4, 9], color=COLOURS[0])
    print(to_svg(demo))
