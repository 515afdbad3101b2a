"""Matplotlib figures with one style and one palette, saved as SVG, PNG, PDF or HTML."""

import io
import logging
import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.files import check_suffix, replacing, write_text
from regard.core.logging import logger
from regard.plots.emoji import draw_emoji
from regard.plots.html import page
from regard.plots.inputs import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

COLORS = ("#2f7ed8", "#e0762f", "#259d6f", "#a95fc0", "#b8921f", "#76838f")
"""Colours of lines and bars: distinct on light and dark pages and for colour-blind readers."""

SUFFIXES = (".png", ".svg", ".pdf", ".html")
"""Suffixes of the files that `save` writes."""

_SHRINK = 0.7
_MISSING = r"Glyph (\d+) .* missing from font"
_TEXT_COLOR = "#1f2933"
# The first one that is installed and has a character is used for it.
_FONTS = (
    "DejaVu Sans",
    *(f"Noto Sans CJK {region}" for region in ("JP", "SC", "TC", "KR")),
    "Noto Sans Arabic",
    "Noto Sans",
    *(
        f"Noto Sans {script}"
        for script in (
            "Hebrew", "Devanagari", "Bengali", "Tamil", "Telugu", "Kannada", "Malayalam",
            "Gujarati", "Gurmukhi", "Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Ethiopic",
            "Armenian", "Georgian", "Symbols", "Symbols2",
        )
    ),
    "Noto Emoji",
    "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Geeza Pro", "Kohinoor Devanagari",
    "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Nirmala UI", "Leelawadee UI", "Segoe UI",
    "Segoe UI Emoji",
)  # fmt: skip
_STYLE = Path(__file__).with_name("figure.css").read_text(encoding="utf-8").strip()


def series_color(number: int) -> str:
    """Return the colour of the series or group with an index, counted from 0."""
    return COLORS[number % len(COLORS)]


@contextmanager
def style() -> Iterator[None]:
    """Apply the package's style to figures made inside the block.

    Characters that no installed font has are shown as boxes; `save` logs them.
    """
    import matplotlib
    from matplotlib import font_manager

    # Some fonts have no bold characters; their regular ones are used then, which needs no message.
    logging.getLogger("matplotlib.font_manager").addFilter(_is_not_about_weights)
    installed = set(font_manager.get_font_names())
    fonts = [font for font in _FONTS if font in installed]
    with matplotlib.rc_context({**_settings(), "font.family": fonts}):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=_MISSING)
            yield


def _is_not_about_weights(record: logging.LogRecord) -> bool:
    return "font weight" not in record.getMessage()


@cache
def _settings() -> Mapping[Any, Any]:
    import matplotlib

    path = Path(__file__).with_name("regard.mplstyle")
    return matplotlib.rc_params_from_file(path, use_default_template=False)


def to_svg(figure: "Figure") -> Markup:
    """Render a figure as SVG that follows the light or dark colour scheme of the page."""
    buffer = io.StringIO()
    with style():
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
        svg = buffer.getvalue()
        svg = svg[svg.index("<svg") :].replace(_TEXT_COLOR, "currentColor")
        # Remove unused numbered ids, which would clash between several figures on a page.
        svg = re.sub(r' id="[\w.]+_\d+"', "", svg)
        svg = svg.replace("<svg", '<svg class="regard-figure" direction="ltr" role="img"', 1)
        # On a page it shrinks to letters that are still readable, and can be scrolled if wider.
        width = re.search(r'width="([\d.]+)pt"', svg)
        least = f' style="min-width:{_SHRINK * float(width[1]):.0f}pt"' if width else ""
        return Markup(svg.replace(">", f"{least}>\n<style>{_STYLE}</style>", 1))


def hide_unused(grid: "NDArray[Any]", num_panels: int) -> None:
    """Hide the axes of a grid after its last panel; the panels above them get labels of their x.

    Args:
        grid: Axes by row and column, all rows but the last one full.
        num_panels: Number of axes that are used.
    """
    for axes in grid.flat[num_panels:]:
        axes.set_visible(False)
    for axes in grid.flat[max(0, num_panels - grid.shape[1]) : num_panels]:
        axes.tick_params(labelbottom=True)


def save(path: Path, figure: "Figure", *, title: str = "") -> None:
    """Save a figure in the format given by the suffix, one of `SUFFIXES`.

    Args:
        path: File to write.
        figure: Figure to save; PNG and PDF have a white background.
        title: Title of the HTML page.
    """
    suffix = check_path(path)
    if suffix in (".png", ".pdf"):
        # Without a date, equal figures give equal files.
        metadata = {"CreationDate": None} if suffix == ".pdf" else None
        with style(), replacing(path) as temporary, warnings.catch_warnings(record=True) as caught:
            draw_emoji(figure)
            warnings.filterwarnings("always", message=_MISSING)
            figure.savefig(temporary, format=suffix[1:], facecolor="white", metadata=metadata)
        _report_missing(path, [str(one.message) for one in caught])
    else:
        svg = to_svg(figure)
        write_text(path, svg if suffix == ".svg" else page(svg, title or "Images"))


def _report_missing(path: Path, messages: Sequence[str]) -> None:
    """Log the characters that no installed font has, which are shown as boxes."""
    numbers = (re.match(_MISSING, message) for message in messages)
    missing = sorted({chr(int(found[1])) for found in numbers if found})
    # Joiners and selectors of emoji are no characters of their own.
    shown = [one for one in missing if unicodedata.category(one) not in ("Cf", "Mn")]
    if shown:
        logger.warning(
            "%s shows boxes for %d characters that no font installed here has, such as '%s'. "
            "Save .svg or .html, which use the fonts of the reader, or install fonts.",
            path,
            len(shown),
            shown[0],
        )


def check_path(path: Path, name: str = "path") -> str:
    """Return the suffix in lower case; raise `ConfigError` if `save` cannot write such files.

    Args:
        path: File to write.
        name: Name of the setting or option in the message.
    """
    return check_suffix(path, name, *SUFFIXES)


if __name__ == "__main__":
    from matplotlib.figure import Figure

    with style():
        demo = Figure(figsize=(3, 2))
        demo.add_subplot().plot([0, 1, 4, 9], color=COLORS[0])
    print(to_svg(demo))
