"""Draw the pictures of `docs` that are computed, not measured.

python benchmarks/drawings.py
"""

from pathlib import Path

import torch
from matplotlib.figure import Figure

from regard.attention.positions import sinusoids
from regard.plots import figure as picture
from regard.plots.heatmap import matrices

FOLDER = Path(__file__).parent.parent / "docs"


def main() -> None:
    """Draw every picture."""
    for name, draw in DRAWINGS.items():
        picture.save(FOLDER / name, draw())
        print(f"docs/{name}")


def _positions() -> Figure:
    table = sinusoids(torch.arange(100), 512)
    # Side by side in one table, sines and cosines flicker; apart, each is a wave that slows down.
    panels = {"even columns: sin": table[:, 0::2], "odd columns: cos": table[:, 1::2]}
    return matrices(panels, x_label="pair of columns i", y_label="position p", aspect=1.3)


DRAWINGS = {
    "attention-positions.svg": _positions,
}


if __name__ == "__main__":
    main()
