"""Many references → one array of small images, all of one shape, and what cannot be read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from regard.core.errors import DataError
from regard.data.opening import MAX_PIXELS, open_image

Pixels = NDArray[np.uint8]

Fit = Literal["crop", "pad", "squash"]

MEAN_GREY = 128


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


@dataclass(frozen=True)
class Decoded:
    """Images that were read, and why others were not."""

    pixels: Pixels
    """(B, C, Y, X)."""
    rows: dict[str, int]
    """Where each reference is found in `pixels`."""
    failures: dict[str, str]
    """What is wrong with each of the other references, in a sentence."""


def resize(image: Image.Image, frame: Frame) -> Image.Image:
    """Make an image a square of the frame's size, with antialiasing."""
    return FITS[frame.fit](image, frame.size)


def to_pixels(image: Image.Image, frame: Frame) -> Pixels:
    """Turn an image of any shape into (C, Y, X)."""
    image = resize(image, frame).convert("L" if frame.channels == 1 else "RGB")
    pixels = np.asarray(image, np.uint8).reshape(frame.size, frame.size, frame.channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))  # (C, Y, X)


def decode(references: Iterable[str], frame: Frame) -> Decoded:
    """Read images, each once however often it is named, and note which cannot be read."""
    found: dict[str, Pixels] = {}
    failures: dict[str, str] = {}
    for reference in dict.fromkeys(references):
        try:
            found[reference] = to_pixels(open_image(reference, max_pixels=frame.max_pixels), frame)
        except DataError as error:
            failures[reference] = str(error)
    shape = (len(found), frame.channels, frame.size, frame.size)
    pixels = np.stack([*found.values()]) if found else np.zeros(shape, np.uint8)
    return Decoded(pixels, {reference: row for row, reference in enumerate(found)}, failures)


def _crop(image: Image.Image, size: int) -> Image.Image:
    """Bring the shorter side to the size and cut the middle out of the longer one."""
    return ImageOps.fit(image, (size, size), Image.Resampling.BICUBIC)


def _pad(image: Image.Image, size: int) -> Image.Image:
    """Bring the longer side to the size and put the image into the middle of grey."""
    scale = size / max(image.size)
    width, height = (max(1, round(scale * side)) for side in image.size)
    canvas = Image.new(image.mode, (size, size), (MEAN_GREY,) * len(image.getbands()))
    small = image.resize((width, height), Image.Resampling.BICUBIC)
    canvas.paste(small, ((size - width) // 2, (size - height) // 2))
    return canvas


def _squash(image: Image.Image, size: int) -> Image.Image:
    """Bring both sides to the size, whatever becomes of the proportions."""
    return image.resize((size, size), Image.Resampling.BICUBIC)


FITS: dict[Fit, Callable[[Image.Image, int], Image.Image]] = {
    "crop": _crop,
    "pad": _pad,
    "squash": _squash,
}
