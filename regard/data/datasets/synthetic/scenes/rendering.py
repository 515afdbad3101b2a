"""Scenes as pixels: the image, the mask of each thing, and labels on a grid."""

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least
from regard.core.keyed_random import uniform
from regard.data.datasets.synthetic.scenes.things import COLOURS, Scene, Thing

SIZE = 64
"""Width and height of a picture, in pixels."""

FINENESS = 4
"""Each pixel is sampled so many by so many times, which makes edges smooth."""

EMPTY = "."
"""The label of a cell with nothing in it."""
LETTERS: dict[str, str] = {"circle": "o", "square": "q", "triangle": "t", "star": "s", "cross": "x"}
"""The label of a cell with a thing in it, by its shape."""

Pixels = NDArray[np.uint8]
Coverage = NDArray[np.float32]
Points = NDArray[np.float64]
_NOISE = 11
"""Separates the random numbers of the noise from others with the same seed."""


def render_scene(scene: Scene, *, size: int = SIZE) -> Pixels:
    """Render a scene as red, green and blue, (Y, X, 3).

    Args:
        scene: What to render.
        size: Width and height in pixels.
    """
    at_least("size", size, 8)
    ground = scene.background
    pixels = np.full((size, size, 3), ground.level, np.float32)
    if ground.noise:
        names = (_NOISE, scene.seed, scene.number)
        noise = uniform(names, np.arange(size), size * 3).reshape(size, size, 3)
        pixels += ((2 * noise - 1) * ground.noise).astype(np.float32)
    pixels = np.clip(pixels, 0, 255)
    for thing in scene.things:
        (top, left), share = _cover(thing, size)
        part = pixels[top : top + share.shape[0], left : left + share.shape[1]]
        part += share[..., None] * (np.array(COLOURS[thing.colour], np.float32) - part)
    return np.rint(pixels).astype(np.uint8)


def thing_masks(scene: Scene, *, size: int = SIZE) -> NDArray[np.bool_]:
    """Return which pixels each thing covers by half at the least, (things, rows, columns)."""
    masks = np.zeros((len(scene.things), size, size), bool)
    for number, thing in enumerate(scene.things):
        (top, left), share = _cover(thing, size)
        masks[number, top : top + share.shape[0], left : left + share.shape[1]] = share >= 0.5
    return masks


def cell_shares(scene: Scene, *, grid: int) -> Coverage:
    """Return which share of each cell of a grid each thing covers, (things, rows, columns).

    Args:
        scene: The scene.
        grid: Number of rows, and of columns.
    """
    at_least("grid", grid, 1)
    fine = -(-SIZE // grid)  # pixels a cell, rounded up
    masks = thing_masks(scene, size=grid * fine).astype(np.float32)
    shares: Coverage = masks.reshape(-1, grid, fine, grid, fine).mean((2, 4))
    return shares


def cell_labels(scene: Scene, *, grid: int) -> str:
    """Write which shape fills each cell of a grid: a letter a cell, rows separated by spaces.

    A cell is a shape's if things cover it by half at the least, the one that covers most.
    """
    shares = cell_shares(scene, grid=grid)
    names = np.array([LETTERS[thing.shape] for thing in scene.things])
    labels = np.where(shares.sum(0) >= 0.5, names[shares.argmax(0)], EMPTY)  # (Y, X)
    return " ".join("".join(row) for row in labels)


def _cover(thing: Thing, size: int) -> tuple[tuple[int, int], Coverage]:
    """Return which share of each pixel around a thing it covers, and where these pixels begin."""
    left, top = (int(edge * size) for edge in thing.box[:2])
    right, low = (min(size, int(edge * size) + 1) for edge in thing.box[2:])
    columns = (left + (np.arange((right - left) * FINENESS) + 0.5) / FINENESS) / size
    rows = (top + (np.arange((low - top) * FINENESS) + 0.5) / FINENESS) / size
    inside = _is_inside(thing, columns[None], rows[:, None])
    # Whole rows are added first, which is quicker than small squares.
    by_row = inside.reshape(low - top, FINENESS, -1).sum(1, dtype=np.float32)
    by_pixel = by_row.reshape(low - top, right - left, FINENESS).sum(2)
    return (top, left), by_pixel / np.float32(FINENESS**2)


def _is_inside(thing: Thing, x: Points, y: Points) -> NDArray[np.bool_]:
    """Tell which points lie in a thing: (1, columns) and (rows, 1) → (rows, columns)."""
    if not thing.outline:
        return (x - thing.x) ** 2 + (y - thing.y) ** 2 <= thing.radius**2
    inside = np.zeros((y.size, x.size), bool)
    corners = zip(thing.outline, (*thing.outline[1:], thing.outline[0]), strict=True)
    for (x1, y1), (x2, y2) in corners:
        # A point is inside if a line from it to the right meets an odd number of sides; only rows
        # between the ends of a side can meet it.
        first, last = np.searchsorted(y[:, 0], (min(y1, y2), max(y1, y2)))
        if first < last:
            rows = y[first:last]
            inside[first:last] ^= x < x1 + (rows - y1) * (x2 - x1) / (y2 - y1)
    return inside
