"""What a model sees in an image or a video: attention, word by word, and areas painted over it."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgba_array
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from regard.core.errors import DataError
from regard.core.tables import pick
from regard.plots.figure import to_svg
from regard.plots.grid import Tile, sheet
from regard.plots.inputs import Pixels, check_image, fit, greatest

CLASSES = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Colours of areas, to be told apart colour-blind or not (Tol 2021, "bright")."""

_DARKEST = 0.22
_PAINT = 0.7
# How bright red, green and blue are to the eye (ITU-R BT.601).
_LUMA = np.array([0.299, 0.587, 0.114])

Floats = NDArray[np.float64]


def overlay(
    image: ArrayLike, weights: ArrayLike, *, look: str = "light", most: float = 0.0
) -> Pixels:
    """Show where weights lie in an image.

    The grid is laid over the whole image and interpolated. The scale begins at 0 and ends at the
    greatest weight: equal weights everywhere leave the whole image alight.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; bytes.
        weights: (Y, X) of the grid, 0 or more.
        look: `light` darkens what is not looked at, `heat` colours what is.
        most: Where the scale ends, if not at the greatest weight: several images can share one.

    Returns:
        (Y, X, 3), at the size of a drawing.
    """
    pixels = fit(check_image(image)).astype(float)
    grid = _check_grid(weights)
    shares = grid / (most or greatest(grid))
    strength = _spread(shares, pixels.shape[0], pixels.shape[1])[..., None]
    blended = pick(LOOKS, look, "look")(pixels, strength)
    return blended.round().clip(0, 255).astype(np.uint8)


def strip(image: ArrayLike, words: Sequence[str], weights: ArrayLike) -> list[Tile]:
    """Show where a model looked for each word: the image, then the image under each word's weights.

    Xu et al. 2015, figure 2. Each word has a scale of its own; its greatest weight stands below.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; bytes.
        words: The words, or pieces of them.
        weights: (T, Y, X), a grid for each word.
    """
    grids = np.asarray(weights, dtype=float)
    if grids.ndim != 3 or len(grids) != len(words):
        raise DataError(
            f"`weights` must be a grid for each of {len(words)} words, but has the shape "
            f"{grids.shape}."
        )
    shown = [
        Tile(overlay(image, grid), word, f"max {greatest(grid):.2f}")
        for word, grid in zip(words, grids, strict=True)
    ]
    return [Tile(fit(check_image(image))), *shown]


def film(frames: ArrayLike, words: Sequence[str], weights: ArrayLike) -> list[Tile]:
    """Show when and where a model looked in a video: its frames, then these under each word.

    Each word has a row of frames and one scale for all of them, so that it shows which of them was
    looked at; below a frame stands its share of the weight.

    Args:
        frames: (F, Y, X, 3), or (F, Y, X) in grey; bytes.
        words: The words, or pieces of them.
        weights: (T, F, Y, X), a grid for each frame and each word.
    """
    pictures, grids = list(np.asarray(frames)), np.asarray(weights, dtype=float)
    if grids.ndim != 4 or grids.shape[:2] != (len(words), len(pictures)):
        raise DataError(
            f"`weights` must be a grid for each of {len(pictures)} frames and each of {len(words)} "
            f"words, but has the shape {grids.shape}."
        )
    plain = [
        Tile(fit(check_image(picture)), note=f"frame {number}")
        for number, picture in enumerate(pictures, start=1)
    ]
    shown = [
        Tile(overlay(picture, grid, most=greatest(by_frame)), word, f"{part:.0%}")
        for word, by_frame in zip(words, grids, strict=True)
        for picture, grid, part in zip(pictures, by_frame, _parts(by_frame), strict=True)
    ]
    return [*plain, *shown]


def areas(image: ArrayLike, mask: ArrayLike) -> Pixels:
    """Paint the areas of an image in grey, each class in a colour of its own; class 0 stays grey.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; bytes.
        mask: (Y, X), the class of every pixel; it may be coarser than the image.
    """
    classes = np.asarray(mask)
    if classes.ndim != 2 or not classes.size or not np.issubdtype(classes.dtype, np.integer):
        raise DataError(
            "`mask` must hold the number of a class for each row and column, but has the shape "
            f"{classes.shape} and the type {classes.dtype}."
        )
    pixels = fit(check_image(image)).astype(float)
    rows, columns = (
        np.arange(size) * count // size
        for size, count in zip(pixels.shape, classes.shape, strict=False)
    )
    classes = classes[rows][:, columns]  # (Y, X)
    colours = 255 * to_rgba_array(CLASSES)[(classes - 1) % len(CLASSES), :3]
    grey = np.broadcast_to(_grey(pixels), pixels.shape)
    painted = np.where(classes[..., None] > 0, (1 - _PAINT) * grey + _PAINT * colours, grey)
    return painted.round().astype(np.uint8)


def segmentation(image: ArrayLike, found: ArrayLike, right: ArrayLike | None = None) -> list[Tile]:
    """Show an image, the areas found in it and, where known, the right ones beside it.

    Args:
        image: (Y, X, 3), or (Y, X) in grey; bytes.
        found: As the mask of `areas`.
        right: Another one.
    """
    tiles = [Tile(fit(check_image(image)), "image"), Tile(areas(image, found), "found")]
    return tiles if right is None else [*tiles, Tile(areas(image, right), "right")]


def _light(pixels: Floats, strength: Floats) -> Floats:
    """Darken and grey what has little weight, and leave the rest in its own colours."""
    colour = 0.35 + 0.65 * strength
    muted: Floats = colour * pixels + (1 - colour) * _grey(pixels)
    return muted * (_DARKEST + (1 - _DARKEST) * strength)


def _heat(pixels: Floats, strength: Floats) -> Floats:
    """Lay colours from dark over red to yellow over the image in grey."""
    colours: Floats = 255 * colormaps["inferno"](strength[..., 0])[..., :3]
    opacity = 0.25 + 0.45 * strength
    return (1 - opacity) * _grey(pixels) + opacity * colours


LOOKS: dict[str, Callable[[Floats, Floats], Floats]] = {"light": _light, "heat": _heat}
"""How weights are shown: pixels (Y, X, 3) and strengths (Y, X, 1) of 0 to 1 → pixels."""


def _grey(pixels: Floats) -> Floats:
    grey: Floats = pixels @ _LUMA  # (Y, X)
    return grey[..., None]


def _spread(grid: Floats, height: int, width: int) -> Floats:
    """Interpolate a grid of 0 to 1 to (Y, X)."""
    scaled = Image.fromarray(grid.astype(np.float32))
    smooth = scaled.resize((width, height), Image.Resampling.BICUBIC)
    # Cubic curves swing a little beyond what they join.
    return np.asarray(smooth, dtype=float).clip(0, 1)


def _parts(by_frame: Floats) -> list[float]:
    """Return which share of the weight (F, Y, X) lies in each frame."""
    sums = by_frame.sum((1, 2))
    return [float(part) for part in sums / max(float(sums.sum()), 1e-12)]


def _check_grid(weights: ArrayLike) -> Floats:
    grid = np.asarray(weights, dtype=float)
    if grid.ndim != 2 or not grid.size:
        raise DataError(
            f"`weights` must be a grid of rows and columns, but has the shape {grid.shape}."
        )
    if not np.isfinite(grid).all() or grid.min() < 0:
        raise DataError("`weights` must be finite numbers of 0 or more, but some are not.")
    return grid


if __name__ == "__main__":
    rows, columns = np.mgrid[0:96, 0:96]
    sky = np.stack([rows * 2, columns * 2, 255 - rows], axis=-1).astype(np.uint8)
    looks = np.eye(4)[:, :, None] * np.eye(4)[:, None, :]
    print(to_svg(sheet(strip(sky, "from left to right".split(), looks), title="A diagonal")))
