"""Overlays on images and videos: attention weights per word, and segmentation masks."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from regard.core.errors import DataError
from regard.core.tables import pick
from regard.plots.figure import to_svg
from regard.plots.grid import Tile, sheet
from regard.plots.inputs import Pixels, check_image, find_vmax, resize_image

CLASSES = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Colours of classes, distinct for colour-blind readers (Tol 2021, "bright")."""

_MIN_BRIGHTNESS = 0.22
_MASK_OPACITY = 0.7
# Luma coefficients of red, green and blue (ITU-R BT.601).
_LUMA = np.array([0.299, 0.587, 0.114])

Floats = NDArray[np.float64]


def overlay(
    image: ArrayLike, weights: ArrayLike, *, blend: str = "light", vmax: float = 0.0
) -> Pixels:
    """Overlay a grid of weights on an image.

    The grid is interpolated to the size of the image. The scale is 0 to the largest weight, so
    uniform weights leave the whole image bright.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; uint8.
        weights: (Y, X) of the grid, non-negative.
        blend: `light` darkens regions of low weight, `heat` colours regions of high weight.
        vmax: Upper end of the scale, for several images with one scale; 0 = the largest weight.

    Returns:
        (Y, X, 3), at plot size.
    """
    pixels = resize_image(check_image(image)).astype(float)
    grid = _check_grid(weights)
    relative = grid / (vmax or find_vmax(grid))
    strength = _interpolate(relative, pixels.shape[0], pixels.shape[1])[..., None]
    blended = pick(BLENDS, blend, "blend")(pixels, strength)
    return blended.round().clip(0, 255).astype(np.uint8)


def image_attention(image: ArrayLike, words: Sequence[str], weights: ArrayLike) -> list[Tile]:
    """Return tiles of an image and of its attention weights for each word.

    Xu et al. 2015, figure 2. Each word has its own scale; its largest weight is shown below.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; uint8.
        words: Words or subword tokens.
        weights: (T, Y, X), a grid for each word.
    """
    grids = np.asarray(weights, dtype=float)
    if grids.ndim != 3 or len(grids) != len(words):
        raise DataError(
            f"`weights` must be a grid for each of {len(words)} words, but has the shape "
            f"{grids.shape}."
        )
    tiles = [
        Tile(overlay(image, grid), word, f"max {find_vmax(grid):.2f}")
        for word, grid in zip(words, grids, strict=True)
    ]
    return [Tile(resize_image(check_image(image))), *tiles]


def video_attention(frames: ArrayLike, words: Sequence[str], weights: ArrayLike) -> list[Tile]:
    """Return tiles of the frames of a video and of their attention weights for each word.

    Each word has a row of frames with one scale, so that frames can be compared. The share of
    the weight on each frame is shown below it.

    Args:
        frames: (F, Y, X, 3), or (F, Y, X) in grey; uint8.
        words: Words or subword tokens.
        weights: (T, F, Y, X), a grid for each frame and each word.
    """
    images, grids = list(np.asarray(frames)), np.asarray(weights, dtype=float)
    if grids.ndim != 4 or grids.shape[:2] != (len(words), len(images)):
        raise DataError(
            f"`weights` must be a grid for each of {len(images)} frames and each of {len(words)} "
            f"words, but has the shape {grids.shape}."
        )
    plain = [
        Tile(resize_image(check_image(image)), note=f"frame {number}")
        for number, image in enumerate(images, start=1)
    ]
    overlaid = [
        Tile(overlay(image, grid, vmax=find_vmax(by_frame)), word, f"{share:.0%}")
        for word, by_frame in zip(words, grids, strict=True)
        for image, grid, share in zip(images, by_frame, _frame_shares(by_frame), strict=True)
    ]
    return [*plain, *overlaid]


def mask_overlay(image: ArrayLike, mask: ArrayLike) -> Pixels:
    """Overlay a segmentation mask on an image in grey, with a colour per class.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; uint8.
        mask: (Y, X), the class of every pixel, possibly coarser than the image. Class 0 has no
            colour.
    """
    from matplotlib.colors import to_rgba_array

    classes = np.asarray(mask)
    if classes.ndim != 2 or not classes.size or not np.issubdtype(classes.dtype, np.integer):
        raise DataError(
            "`mask` must hold a class index for each row and column, but has the shape "
            f"{classes.shape} and the type {classes.dtype}."
        )
    pixels = resize_image(check_image(image)).astype(float)
    rows, columns = (
        np.arange(size) * count // size
        for size, count in zip(pixels.shape, classes.shape, strict=False)
    )
    classes = classes[rows][:, columns]  # (Y, X)
    colors = 255 * to_rgba_array(CLASSES)[(classes - 1) % len(CLASSES), :3]
    grey = np.broadcast_to(_grey(pixels), pixels.shape)
    blended = (1 - _MASK_OPACITY) * grey + _MASK_OPACITY * colors
    return np.where(classes[..., None] > 0, blended, grey).round().astype(np.uint8)


def segmentation(
    image: ArrayLike, predicted: ArrayLike, target: ArrayLike | None = None
) -> list[Tile]:
    """Return tiles of an image, its predicted mask and, if given, its target mask.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; uint8.
        predicted: Mask, as for `mask_overlay`.
        target: Mask, as for `mask_overlay`.
    """
    masks = (
        {"predicted": predicted} if target is None else {"predicted": predicted, "target": target}
    )
    tiles = [Tile(mask_overlay(image, mask), name) for name, mask in masks.items()]
    return [Tile(resize_image(check_image(image)), "image"), *tiles]


def _light(pixels: Floats, strength: Floats) -> Floats:
    """Darken and desaturate pixels of low weight."""
    saturation = 0.35 + 0.65 * strength
    muted: Floats = saturation * pixels + (1 - saturation) * _grey(pixels)
    return muted * (_MIN_BRIGHTNESS + (1 - _MIN_BRIGHTNESS) * strength)


def _heat(pixels: Floats, strength: Floats) -> Floats:
    """Overlay a colour map on the image in grey."""
    from matplotlib import colormaps

    colors: Floats = 255 * colormaps["inferno"](strength[..., 0])[..., :3]
    opacity = 0.25 + 0.45 * strength
    return (1 - opacity) * _grey(pixels) + opacity * colors


BLENDS: dict[str, Callable[[Floats, Floats], Floats]] = {"light": _light, "heat": _heat}
"""Blend functions: pixels (Y, X, 3) and relative weights (Y, X, 1), 0 to 1 → pixels."""


def _grey(pixels: Floats) -> Floats:
    grey: Floats = pixels @ _LUMA  # (Y, X)
    return grey[..., None]


def _interpolate(grid: Floats, height: int, width: int) -> Floats:
    """Interpolate a grid of 0 to 1 to (Y, X)."""
    scaled = Image.fromarray(grid.astype(np.float32))
    smooth = scaled.resize((width, height), Image.Resampling.BICUBIC)
    # Bicubic interpolation overshoots.
    return np.asarray(smooth, dtype=float).clip(0, 1)


def _frame_shares(by_frame: Floats) -> list[float]:
    """Return the share of the weights (F, Y, X) on each frame."""
    sums = by_frame.sum((1, 2))
    return [float(share) for share in sums / max(float(sums.sum()), 1e-12)]


def _check_grid(weights: ArrayLike) -> Floats:
    grid = np.asarray(weights, dtype=float)
    if grid.ndim != 2 or not grid.size:
        raise DataError(
            f"`weights` must be a grid of rows and columns, but has the shape {grid.shape}."
        )
    if not np.isfinite(grid).all() or grid.min() < 0:
        raise DataError("`weights` must be finite and non-negative, but some are not.")
    return grid


if __name__ == "__main__":
    rows, columns = np.mgrid[0:96, 0:96]
    sample = np.stack([rows * 2, columns * 2, 255 - rows], axis=-1).astype(np.uint8)
    diagonal = np.eye(4)[:, :, None] * np.eye(4)[:, None, :]
    tiles = image_attention(sample, "from left to right".split(), diagonal)
    print(to_svg(sheet(tiles, title="A diagonal")))
