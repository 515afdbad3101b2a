"""JPEG as a rival of learned compression: what it makes of the same images at every quality.

Small images hold less than a JPEG file's head, so that all are joined in one sheet and the head,
which is counted, is shared. JPEG is given what suits it best: at each size the better of sheets
whose images begin at blocks of 8 x 8 pixels and sheets without gaps, of colours in full and of
colours at half the size; Huffman tables are fitted to the sheet.
"""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from regard.core.errors import DataError
from regard.metrics.vision.images import psnr
from regard.plots.curves import lines

QUALITIES = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 50, 60, 70, 80, 85, 90, 95)
BLOCK = 8
NUM_DRAWN = 8
"""Sizes of JPEG in a drawing, at least."""
SAMPLINGS = {"4:4:4": 0, "4:2:0": 2}
"""What Pillow calls colours in full and at half the size."""

Pictures = NDArray[np.uint8]


@dataclass(frozen=True)
class Rate:
    """What one setting makes of a set of images."""

    bits_per_pixel: float
    """Of the whole file, its head included."""
    psnr: float
    """In dB, the mean over images."""
    num_bytes: int
    setting: str


def rates(images: Pictures) -> list[Rate]:
    """Return what JPEG can reach, the smallest file first, without what a smaller one equals.

    Args:
        images: (B, C, Y, X), bytes.
    """
    found = []
    paddings = {0, -images.shape[2] % BLOCK}
    samplings = SAMPLINGS if images.shape[1] == 3 else {"grey": 0}
    for padding, (name, sampling) in product(sorted(paddings), samplings.items()):
        padded = np.pad(images, [(0, 0), (0, 0), (0, padding), (0, padding)], mode="edge")
        for quality in QUALITIES:
            size, back = _there_and_back(padded, quality=quality, sampling=sampling)
            back = back[..., : images.shape[2], : images.shape[3]]
            bits = 8 * size / (len(images) * images.shape[2] * images.shape[3])
            setting = f"quality {quality}, {name}{', at blocks' if padding else ''}"
            found.append(Rate(bits, psnr(back, images).value, size, setting))
    return _front(found)


def quality_at(found: Sequence[Rate], bits_per_pixel: float) -> float | None:
    """Return the PSNR of JPEG at a size, between its two nearest; None where none is so small."""
    sizes = [rate.bits_per_pixel for rate in found]
    if bits_per_pixel < sizes[0]:
        return None
    return float(np.interp(bits_per_pixel, sizes, [rate.psnr for rate in found]))


def draw(found: Sequence[Rate], others: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Draw quality over size: JPEG beside others.

    Args:
        found: What `rates` returns.
        others: For each other way its bits a pixel and its PSNR.
    """
    points = [(rate.bits_per_pixel, rate.psnr) for rate in found]
    most = 2 * max(bits for reached in others.values() for bits, _ in reached)
    # What is far beyond the others tells nothing of them.
    near = points[: max(NUM_DRAWN, sum(bits <= most for bits, _ in points))]
    return lines({**others, "JPEG": near}, x_label="bits a pixel", y_label="PSNR in dB")


def join(images: Pictures) -> Pictures:
    """Put images (B, C, Y, X) on one sheet, row by row, (Y, X, C); empty places repeat the last."""
    num_columns = math.ceil(math.sqrt(len(images)))
    num_rows = math.ceil(len(images) / num_columns)
    missing = num_rows * num_columns - len(images)
    images = np.concatenate([images, images[-1:].repeat(missing, axis=0)])
    _, channels, height, width = images.shape
    grid = images.reshape(num_rows, num_columns, channels, height, width)
    return grid.transpose(0, 3, 1, 4, 2).reshape(num_rows * height, num_columns * width, channels)


def part(sheet: Pictures, num: int, *, size: tuple[int, int]) -> Pictures:
    """Take the first images of a sheet (Y, X, C) apart again: (B, C, Y, X)."""
    height, width = size
    num_rows, num_columns = sheet.shape[0] // height, sheet.shape[1] // width
    grid = sheet.reshape(num_rows, height, num_columns, width, -1).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(grid.reshape(-1, *grid.shape[2:])[:num])


def _there_and_back(images: Pictures, *, quality: int, sampling: int) -> tuple[int, Pictures]:
    """Return the size of a sheet's file in bytes, and its images as they come back."""
    sheet = join(images)
    if max(sheet.shape) > 65_000:
        raise DataError(f"A JPEG file holds 65,000 pixels a side, but these take {sheet.shape}.")
    buffer = io.BytesIO()
    drawn = Image.fromarray(sheet[..., 0] if sheet.shape[2] == 1 else sheet)
    drawn.save(buffer, "JPEG", quality=quality, subsampling=sampling, optimize=True)
    with Image.open(buffer) as read:
        back = np.asarray(read).reshape(sheet.shape)
    return buffer.tell(), part(back, len(images), size=(images.shape[2], images.shape[3]))


def _front(found: Sequence[Rate]) -> list[Rate]:
    """Keep what nothing smaller equals."""
    kept: list[Rate] = []
    for rate in sorted(found, key=lambda rate: (rate.bits_per_pixel, -rate.psnr)):
        if not kept or rate.psnr > kept[-1].psnr:
            kept.append(rate)
    return kept
