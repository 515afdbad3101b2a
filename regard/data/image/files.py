"""Image files: formats, detection and names in messages."""

import warnings
from pathlib import Path

from PIL import Image

from regard.data.formats import IMAGE
from regard.data.image.builtin import NUMBERED_IMAGES
from regard.data.media import Medium


def _has_signature(path: Path) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path):
            return True
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False


IMAGE_FILES = Medium(
    formats=IMAGE,
    text="caption",
    numbered=NUMBERED_IMAGES,
    headings=({"image"}, {"caption"}),
    has_signature=_has_signature,
)
