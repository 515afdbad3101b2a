"""Emoji in figures: matplotlib cannot read colour fonts, so labels with emoji become images."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

_FONTS = ("NotoColorEmoji", "Noto-COLRv1", "Apple Color Emoji", "seguiemj")
_LETTERS = "DejaVu Sans"
_SIZES = (109, 160, 96)
"""Sizes of the bitmaps of Noto, Apple and others; scalable fonts have all sizes."""

# Emoji, and the joiners, selectors, skin tones and keycaps that change them.
_RUNS = re.compile(
    "((?:[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55]"
    "[\u200d\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*)+)"
)
_EMOJI = re.compile("[\U0001f000-\U0001faff]|[\u2600-\u27bf\u2b50\u2b55]\ufe0f")


def draw_emoji(figure: "Figure") -> None:
    """Replace labels that contain emoji by images, if a colour font is installed."""
    from matplotlib.text import Text

    def is_shown(label: Any) -> bool:
        text = label.get_text()
        return label.get_visible() and bool(_EMOJI.search(text)) and _has_letters(text)

    figure.draw_without_rendering()
    labels = [label for label in figure.findobj(Text) if is_shown(label)]
    font = _find_font() if labels else None
    if font is None:
        return
    # Labels that are hidden take no space, so the layout must not change any more.
    figure.set_layout_engine("none")
    extents = [(label, label.get_window_extent()) for label in labels]
    for label, box in extents:
        x, y = figure.transFigure.inverted().transform(((box.x0 + box.x1) / 2, box.y0))
        _replace_label(figure, label, font, center=x, bottom=y)


def _replace_label(
    figure: "Figure", label: "Text", font: ImageFont.FreeTypeFont, *, center: float, bottom: float
) -> None:
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    text = label.get_text()
    image = render(text, font, color=str(label.get_color()))
    is_emoji = not _RUNS.sub("", text).strip()
    if not is_emoji and label.get_rotation():
        image = image.rotate(label.get_rotation(), expand=True, resample=Image.Resampling.BICUBIC)
    zoom = 1.2 * float(label.get_fontsize()) / font.size
    shown = OffsetImage(np.asarray(image), zoom=zoom, interpolation="antialiased")
    figure.add_artist(
        AnnotationBbox(
            shown,
            (center, bottom),
            xycoords=figure.transFigure,
            box_alignment=(0.5, 0),
            frameon=False,
            pad=0,
            annotation_clip=False,
        )
    )
    label.set_visible(False)


def render(text: str, font: ImageFont.FreeTypeFont, *, color: str) -> Image.Image:
    """Render a text with emoji as an image with a transparent background.

    Args:
        text: The text.
        font: Font of the emoji, whose size is that of the image.
        color: Colour of the other characters.
    """
    fonts = (_text_font(font.size), font)
    parts = [(run, fonts[index % 2]) for index, run in enumerate(_RUNS.split(text))]
    parts = [(run, one) for run, one in parts if run]
    widths = [max(1, round(one.getlength(run))) for run, one in parts]
    image = Image.new("RGBA", (sum(widths), round(1.25 * font.size)))
    draw, x = ImageDraw.Draw(image), 0
    for (run, one), width in zip(parts, widths, strict=True):
        draw.text((x, round(font.size)), run, color, one, anchor="ls", embedded_color=True)
        x += width
    return image


@cache
def _find_font() -> ImageFont.FreeTypeFont | None:
    """Return the first installed colour font for emoji."""
    from matplotlib import font_manager

    paths = {Path(path).stem: path for path in sorted(font_manager.findSystemFonts())}
    for name in _FONTS:
        for size in _SIZES if name in paths else ():
            try:
                return ImageFont.truetype(paths[name], size)
            except OSError:  # a bitmap font without this size
                continue
    return None


@cache
def _text_font(size: float) -> ImageFont.FreeTypeFont:
    from matplotlib import font_manager

    return ImageFont.truetype(font_manager.findfont(_LETTERS), 0.8 * size)


def _has_letters(text: str) -> bool:
    """Return whether the font of the characters beside emoji has all of them."""
    from matplotlib import font_manager

    known = font_manager.get_font(font_manager.findfont(_LETTERS)).get_charmap()
    return all(ord(character) in known for character in _RUNS.sub("", text))


if __name__ == "__main__":
    found = _find_font()
    size = None if found is None else render("yes 👍", found, color="black").size
    print("There is no colour font for emoji." if size is None else size)
