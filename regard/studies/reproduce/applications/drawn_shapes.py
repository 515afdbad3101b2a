"""Small grey images of a shape at a random position, and shapes of other kinds."""

import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

NORMAL, ANOMALOUS = ("circle", "square", "diamond"), ("cross", "ring")
"""Shapes of the training data, and shapes that no model is trained on."""

SIZE = 16
DATA = "data"
NUM_IMAGES = {"train": 2_000, "valid": 200, "test": 300, "anomalies": 300}


def draw(kind: str, x: float, y: float, *, radius: float) -> NDArray[np.uint8]:
    """Draw a white shape on black, with soft edges: (16, 16)."""
    rows, columns = np.mgrid[:SIZE, :SIZE]
    across, down = np.abs(columns - x), np.abs(rows - y)
    outside = {
        "circle": np.hypot(across, down) - radius,
        "square": np.maximum(across, down) - radius,
        "diamond": (across + down) / 1.2 - radius,
        "cross": np.maximum(np.maximum(across, down) - radius, np.minimum(across, down) - 0.8),
        "ring": np.abs(np.hypot(across, down) - radius) - 0.8,
    }[kind]
    # One pixel wide: white inside the edge, black outside.
    pixels: NDArray[np.uint8] = (255 * np.clip(0.5 - outside, 0, 1)).round().astype(np.uint8)
    return pixels


def write_images(folder: Path, seed: int) -> None:
    """Write the images as files, in a folder for each part and shape."""
    numbers = random.Random(seed)
    for part, num in NUM_IMAGES.items():
        kinds = ANOMALOUS if part == "anomalies" else NORMAL
        for index in range(num):
            kind, radius = numbers.choice(kinds), numbers.uniform(2.5, 4.5)
            x, y = (numbers.uniform(4.5, SIZE - 5.5) for _ in range(2))
            path = folder / part / kind / f"{index:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(draw(kind, x, y, radius=radius)).save(path)
