"""Rendering of scenes: image, masks of the objects, and labels on a grid."""

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least
from regard.core.keyed_random import uniform
from regard.data.datasets.synthetic.scenes.objects import COLOURS, Scene, SceneObject

SIZE = 64
"""Width and height of an image, in pixels."""

SUPERSAMPLING = 4
"""Number of samples per pixel in each direction, for smooth edges."""

EMPTY = "."
"""Label of an empty cell."""
LETTERS: dict[str, str] = {"circle": "o", "square": "q", "triangle": "t", "star": "s", "cross": "x"}
"""Label of a cell by the shape of the object in it."""

Pixels = NDArray[np.uint8]
Coverage = NDArray[np.float32]
Points = NDArray[np.float64]
_NOISE = 11
"""Key that separates the random numbers of the noise from others with the same seed."""


def render_scene(scene: Scene, *, size: int = SIZE) -> Pixels:
    """Render a scene as an RGB image, (Y, X, 3).

    Args:
        scene: Scene to render.
        size: Width and height in pixels.
    """
    at_least("size", size, 8)
    background = scene.background
    pixels = np.full((size, size, 3), background.level, np.float32)
    if background.noise:
        key = (_NOISE, scene.seed, scene.number)
        noise = uniform(key, np.arange(size), size * 3).reshape(size, size, 3)
        pixels += ((2 * noise - 1) * background.noise).astype(np.float32)
    pixels = np.clip(pixels, 0, 255)
    for obj in scene.objects:
        (top, left), share = _cover(obj, size)
        part = pixels[top : top + share.shape[0], left : left + share.shape[1]]
        part += share[..., None] * (np.array(COLOURS[obj.colour], np.float32) - part)
    return np.rint(pixels).astype(np.uint8)


def object_masks(scene: Scene, *, size: int = SIZE) -> NDArray[np.bool_]:
    """Return masks of the pixels at least half covered by each object, (objects, rows, columns)."""
    masks = np.zeros((len(scene.objects), size, size), bool)
    for index, obj in enumerate(scene.objects):
        (top, left), share = _cover(obj, size)
        masks[index, top : top + share.shape[0], left : left + share.shape[1]] = share >= 0.5
    return masks


def cell_shares(scene: Scene, *, grid: int) -> Coverage:
    """Return the share of each grid cell covered by each object, (objects, rows, columns).

    Args:
        scene: Scene to measure.
        grid: Number of rows and of columns.
    """
    at_least("grid", grid, 1)
    cell = -(-SIZE // grid)  # pixels per cell, rounded up
    masks = object_masks(scene, size=grid * cell).astype(np.float32)
    shares: Coverage = masks.reshape(-1, grid, cell, grid, cell).mean((2, 4))
    return shares


def cell_labels(scene: Scene, *, grid: int) -> str:
    """Return the shape in each cell of a grid: a letter per cell, rows separated by spaces.

    A cell has a shape if objects cover at least half of it; the one that covers most is its label.
    """
    shares = cell_shares(scene, grid=grid)
    letters = np.array([LETTERS[obj.shape] for obj in scene.objects])
    labels = np.where(shares.sum(0) >= 0.5, letters[shares.argmax(0)], EMPTY)  # (Y, X)
    return " ".join("".join(row) for row in labels)


def _cover(obj: SceneObject, size: int) -> tuple[tuple[int, int], Coverage]:
    """Return the first row and column of the box of an object, and the covered share per pixel."""
    left, top = (int(edge * size) for edge in obj.box[:2])
    right, bottom = (min(size, int(edge * size) + 1) for edge in obj.box[2:])
    columns = (left + (np.arange((right - left) * SUPERSAMPLING) + 0.5) / SUPERSAMPLING) / size
    rows = (top + (np.arange((bottom - top) * SUPERSAMPLING) + 0.5) / SUPERSAMPLING) / size
    inside = _is_inside(obj, columns[None], rows[:, None])
    # Summing rows first is faster than summing squares.
    by_row = inside.reshape(bottom - top, SUPERSAMPLING, -1).sum(1, dtype=np.float32)
    by_pixel = by_row.reshape(bottom - top, right - left, SUPERSAMPLING).sum(2)
    return (top, left), by_pixel / np.float32(SUPERSAMPLING**2)


def _is_inside(obj: SceneObject, x: Points, y: Points) -> NDArray[np.bool_]:
    """Return whether points lie in an object: (1, columns) and (rows, 1) → (rows, columns)."""
    if not obj.outline:
        return (x - obj.x) ** 2 + (y - obj.y) ** 2 <= obj.radius**2
    inside = np.zeros((y.size, x.size), bool)
    corners = zip(obj.outline, (*obj.outline[1:], obj.outline[0]), strict=True)
    for (x1, y1), (x2, y2) in corners:
        # A point is inside if a ray from it to the right crosses an odd number of sides; only rows
        # between the ends of a side can cross it.
        first, last = np.searchsorted(y[:, 0], (min(y1, y2), max(y1, y2)))
        if first < last:
            rows = y[first:last]
            inside[first:last] ^= x < x1 + (rows - y1) * (x2 - x1) / (y2 - y1)
    return inside
