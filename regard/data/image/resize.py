"""Images of any shape → small squares of one size."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, ImageOps

from regard.data.image.builtin import Pixels as Pixels
from regard.data.image.io import MAX_PIXELS, open_image

Fit = Literal["crop", "pad", "squash"]

MEAN_GREY = 128

RESAMPLING = Image.Resampling.BICUBIC
"""Antialiased where an image becomes smaller."""


@dataclass(frozen=True)
class Frame:
    """What every image becomes, whatever it was. It travels to worker processes."""

    size: int
    """Rows, and columns, in pixels."""
    channels: int = 3
    """1 for grey, 3 for colour."""
    fit: Fit = "crop"
    """What becomes of an image that is no square."""
    max_pixels: int = MAX_PIXELS
    """Pixels that an image may have before."""

    @property
    def mode(self) -> str:
        """What Pillow calls images of this kind."""
        return "L" if self.channels == 1 else "RGB"


def resize(image: Image.Image, frame: Frame) -> Image.Image:
    """Make an image a square of the frame's size, with antialiasing."""
    return FITS[frame.fit](image, frame.size)


def to_pixels(image: Image.Image, frame: Frame) -> Pixels:
    """Turn an image of any shape into (C, Y, X)."""
    image = resize(image, frame).convert(frame.mode)
    pixels = np.asarray(image, np.uint8).reshape(frame.size, frame.size, frame.channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))  # (C, Y, X)


def read_image(reference: str, *, frame: Frame) -> Pixels:
    """Read an image as (1, C, Y, X)."""
    return to_pixels(open_image(reference, max_pixels=frame.max_pixels), frame)[None]


def _pad(image: Image.Image, size: int) -> Image.Image:
    """Bring the longer side to the size and put the image into the middle of grey."""
    scale = size / max(image.size)
    width, height = (max(1, round(scale * side)) for side in image.size)
    canvas = Image.new(image.mode, (size, size), (MEAN_GREY,) * len(image.getbands()))
    small = image.resize((width, height), RESAMPLING)
    canvas.paste(small, ((size - width) // 2, (size - height) // 2))
    return canvas


FITS: dict[Fit, Callable[[Image.Image, int], Image.Image]] = {
    "crop": lambda image, size: ImageOps.fit(image, (size, size), RESAMPLING),
    "pad": _pad,
    "squash": lambda image, size: image.resize((size, size), RESAMPLING),
}
"""Cuts the middle out of the longer side, fills up the shorter one, or squashes the image."""
