"""Opening of image files by Pillow, restricted to formats that Pillow decodes by itself."""

from pathlib import Path
from typing import BinaryIO

from PIL import Image

FORMATS = frozenset(
    ("AVIF", "BMP", "DDS", "DIB", "GIF", "HEIF", "ICO", "JPEG", "JPEG2000", "MPO", "PCX", "PNG")
    + ("PPM", "PSD", "QOI", "TGA", "TIFF", "WEBP")
)
"""Names of the formats of `regard.data.formats.IMAGE` in Pillow.

Of the others, EPS starts Ghostscript, which runs the program that the file contains.
"""


def open_with_pillow(file: str | Path | BinaryIO) -> Image.Image:
    """Open an image file whose format is one of `FORMATS`; its pixels are not decoded yet."""
    Image.init()
    return Image.open(file, formats=[name for name in Image.ID if name in FORMATS])
