"""JPEG baseline for learned compression: size and PSNR of the same images at every quality.

Small images are smaller than a JPEG header, so all images are tiled on one sheet and share the
header, which is counted. JPEG uses its best settings at each size: images aligned to blocks of
8 x 8 pixels or not, full or half chroma resolution, and Huffman tables optimised for the sheet.
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
from regard.data.image.pillow import open_with_pillow
from regard.metrics.vision.images import psnr
from regard.plots.curves import lines

QUALITIES = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 50, 60, 70, 80, 85, 90, 95)
BLOCK = 8
MIN_POINTS = 8
"""Minimum number of JPEG points in a plot."""
SAMPLINGS = {"4:4:4": 0, "4:2:0": 2}
"""Chroma subsampling by name: Pillow's numbers for full and half resolution."""

Images = NDArray[np.uint8]


@dataclass(frozen=True)
class Rate:
    """Size and quality of a set of images under one setting."""

    bits_per_pixel: float
    """Bits per pixel of the file, including its header."""
    psnr: float
    """PSNR in dB, the mean over images."""
    num_bytes: int
    setting: str


def jpeg_rates(images: Images) -> list[Rate]:
    """Return the Pareto front of JPEG settings, in ascending order of size.

    Args:
        images: (B, C, Y, X), bytes.
    """
    rates = []
    paddings = {0, -images.shape[2] % BLOCK}
    samplings = SAMPLINGS if images.shape[1] == 3 else {"grey": 0}
    for padding, (name, sampling) in product(sorted(paddings), samplings.items()):
        padded = np.pad(images, [(0, 0), (0, 0), (0, padding), (0, padding)], mode="edge")
        for quality in QUALITIES:
            size, decoded = _round_trip(padded, quality=quality, sampling=sampling)
            decoded = decoded[..., : images.shape[2], : images.shape[3]]
            bits = 8 * size / (len(images) * images.shape[2] * images.shape[3])
            setting = f"quality {quality}, {name}{', at blocks' if padding else ''}"
            rates.append(Rate(bits, psnr(decoded, images).value, size, setting))
    return _pareto_front(rates)


def psnr_at(rates: Sequence[Rate], bits_per_pixel: float) -> float | None:
    """Interpolate the PSNR of JPEG at a size; return None if no JPEG file is that small."""
    sizes = [rate.bits_per_pixel for rate in rates]
    if bits_per_pixel < sizes[0]:
        return None
    return float(np.interp(bits_per_pixel, sizes, [rate.psnr for rate in rates]))


def plot_rates(
    rates: Sequence[Rate], others: Mapping[str, Sequence[tuple[float, float]]]
) -> Figure:
    """Plot PSNR over size for JPEG and other methods.

    Args:
        rates: Result of `jpeg_rates`.
        others: Bits per pixel and PSNR of other methods by name.
    """
    points = [(rate.bits_per_pixel, rate.psnr) for rate in rates]
    # Limit the x axis to twice the largest size of the other methods.
    max_bits = 2 * max(bits for other in others.values() for bits, _ in other)
    shown = points[: max(MIN_POINTS, sum(bits <= max_bits for bits, _ in points))]
    return lines({**others, "JPEG": shown}, x_label="bits per pixel", y_label="PSNR in dB")


def tile(images: Images) -> Images:
    """Tile images (B, C, Y, X) on one sheet (Y, X, C), row by row, padded with the last image."""
    num_columns = math.ceil(math.sqrt(len(images)))
    num_rows = math.ceil(len(images) / num_columns)
    missing = num_rows * num_columns - len(images)
    images = np.concatenate([images, images[-1:].repeat(missing, axis=0)])
    _, channels, height, width = images.shape
    grid = images.reshape(num_rows, num_columns, channels, height, width)
    return grid.transpose(0, 3, 1, 4, 2).reshape(num_rows * height, num_columns * width, channels)


def untile(sheet: Images, num: int, *, size: tuple[int, int]) -> Images:
    """Return the first `num` images of a sheet (Y, X, C), (B, C, Y, X)."""
    height, width = size
    num_rows, num_columns = sheet.shape[0] // height, sheet.shape[1] // width
    grid = sheet.reshape(num_rows, height, num_columns, width, -1).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(grid.reshape(-1, *grid.shape[2:])[:num])


def _round_trip(images: Images, *, quality: int, sampling: int) -> tuple[int, Images]:
    """Encode and decode images; return the file size in bytes and the decoded images."""
    sheet = tile(images)
    if max(sheet.shape) > 65_000:
        raise DataError(
            f"A JPEG file holds at most 65,000 pixels per side, but these take {sheet.shape}."
        )
    buffer = io.BytesIO()
    image = Image.fromarray(sheet[..., 0] if sheet.shape[2] == 1 else sheet)
    image.save(buffer, "JPEG", quality=quality, subsampling=sampling, optimize=True)
    with open_with_pillow(buffer) as opened:
        decoded = np.asarray(opened).reshape(sheet.shape)
    return len(buffer.getvalue()), untile(
        decoded, len(images), size=(images.shape[2], images.shape[3])
    )


def _pareto_front(rates: Sequence[Rate]) -> list[Rate]:
    """Drop settings for which a smaller file has at least the same PSNR."""
    kept: list[Rate] = []
    for rate in sorted(rates, key=lambda rate: (rate.bits_per_pixel, -rate.psnr)):
        if not kept or rate.psnr > kept[-1].psnr:
            kept.append(rate)
    return kept
