"""Resizing of images of any shape to squares of one size."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, ImageOps

from regard.data.image.builtin import Pixels
from regard.data.image.io import MAX_PIXELS, open_image

Fit = Literal["crop", "pad", "squash"]

MEAN_GREY = 128

RESAMPLING = Image.Resampling.BICUBIC
"""Filter of resizing, antialiased when an image becomes smaller."""


@dataclass(frozen=True)
class Frame:
    """Target size, channels and fit of images. Pickled for worker processes."""

    size: int
    """Height and width in pixels."""
    channels: int = 3
    """1 for grey, 3 for colour."""
    fit: Fit = "crop"
    """Treatment of images that are not square."""
    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels of an image before resizing."""

    @property
    def mode(self) -> str:
        """Pillow's mode of the images."""
        return "L" if self.channels == 1 else "RGB"


def resize(image: Image.Image, frame: Frame) -> Image.Image:
    """Resize an image to a square of the frame's size, with antialiasing."""
    return FITS[frame.fit](image, frame.size)


def to_pixels(image: Image.Image, frame: Frame) -> Pixels:
    """Convert an image of any shape to pixels (C, Y, X)."""
    image = resize(image, frame).convert(frame.mode)
    pixels = np.asarray(image, np.uint8).reshape(frame.size, frame.size, frame.channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))  # (C, Y, X)


def read_image(reference: str, *, frame: Frame) -> Pixels:
    """Read an image as (1, C, Y, X)."""
    return to_pixels(open_image(reference, max_pixels=frame.max_pixels), frame)[None]


def _pad(image: Image.Image, size: int) -> Image.Image:
    """Resize the longer side to `size` and centre the image on grey."""
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
"""Functions that crop the longer side, pad the shorter side, or squash the image."""
