"""Image files: formats, detection and names in messages."""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from PIL import Image

from regard.core.logging import logger
from regard.core.records import find_special_kind
from regard.data.formats import IMAGE
from regard.data.image.builtin import NUMBERED_IMAGES
from regard.data.image.pillow import open_with_pillow
from regard.data.media import Medium

ANIMATED = frozenset((".apng", ".gif", ".png", ".webp"))
"""Suffixes of image formats that may hold several frames."""

NUM_INSPECTED = 10
"""Number of first files that are opened to find animated ones."""


def _has_signature(path: Path) -> bool:
    if find_special_kind(path):
        return False
    try:
        with warnings.catch_warnings(action="ignore"), open_with_pillow(path):
            return True
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False


def _warn_of_animated(references: Sequence[str]) -> None:
    """Warn if some of the first files are animated, since only their first frame is read."""
    names = [name for name in references if Path(name).suffix.lower() in ANIMATED][:NUM_INSPECTED]
    if animated := [name for name in names if _is_animated(name)]:
        _log_animated(animated[0], len(animated), len(names))


@lru_cache(maxsize=16)
def _log_animated(first: str, num: int, num_inspected: int) -> None:
    """Log that images are animated, once for each folder or file."""
    logger.warning(
        f"animated images are read by their first frame only: {num} of the first {num_inspected} "
        f"(first: {first}). For videos: `--recipe moving-directions-laptop`"
    )


def _is_animated(path: str) -> bool:
    if find_special_kind(path):
        return False
    try:
        with warnings.catch_warnings(action="ignore"), open_with_pillow(path) as image:
            return bool(getattr(image, "is_animated", False))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False


IMAGE_FILES = Medium(
    formats=IMAGE,
    text="caption",
    numbered=NUMBERED_IMAGES,
    headings=({"image"}, {"caption"}),
    has_signature=_has_signature,
    inspect=_warn_of_animated,
)
