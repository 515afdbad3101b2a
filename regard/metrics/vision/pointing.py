"""Pointing: does a word look at the thing that it names?

The pointing game of Zhang et al. 2018, on the cells of a grid.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result

Region = NDArray[np.bool_]
"""Which pixels, or cells of any size, belong to something: (Y, X)."""


def pointing_accuracy(
    weights: Sequence[Sequence[ArrayLike]],
    regions: Sequence[Sequence[Region | None]],
    *,
    num_bootstrap: int = 0,
) -> Result:
    """Measure how many words have their greatest weight on what they name, in percent.

    Where several cells have the greatest weight, the word is right by their share on the thing; so
    weights that are all alike are right as often as chance, which the detail tells.

    Args:
        weights: For each sentence, for each of its words the weights over a grid (rows, columns).
        regions: For each sentence, for each of its words where the thing is; None where a word
            names nothing and does not count.
        num_bootstrap: Number of resamples behind the confidence interval, drawn sentence by
            sentence; 0 means no interval.
    """
    if len(weights) != len(regions):
        raise DataError(
            "`weights` and `regions` must have equal length, "
            f"but there are {len(weights):,} and {len(regions):,}."
        )
    hits, chances, wholes = [], [], []
    for place, (maps, things) in enumerate(zip(weights, regions, strict=True)):
        if len(maps) != len(things):
            raise DataError(
                f"Sentence {place} must have a region or None for each of its {len(maps)} words, "
                f"but has {len(things)}."
            )
        pairs = [(np.asarray(w, float), r) for w, r in zip(maps, things, strict=True)]
        found = [_point(grid, region) for grid, region in pairs if region is not None]
        hits.append(sum(hit for hit, _ in found))
        chances.append(sum(chance for _, chance in found))
        wholes.append(len(found))
    if not sum(wholes):
        raise DataError("`regions` must hold at least one region, or there is nothing to point at.")
    return ratio(
        "pointing accuracy",
        hits,
        wholes,
        signature="unit:word|point:argmax|hit:cell-overlaps-region",
        num_bootstrap=num_bootstrap,
        detail={
            "right": float(sum(hits)),
            "count": sum(wholes),
            "chance": 100 * sum(chances) / sum(wholes),
        },
    )


def to_cells(region: ArrayLike, rows: int, columns: int) -> Region:
    """Return which cells of a grid a region reaches into, (rows, columns).

    Args:
        region: (Y, X), bool, of any size; both cover the same picture.
        rows: Rows of the grid.
        columns: Columns of the grid.
    """
    pixels = np.asarray(region, bool)
    return _reach(_reach(pixels, rows).T, columns).T


def box_region(box: Sequence[float], rows: int, columns: int) -> Region:
    """Return the cells of a grid that a box reaches into, (rows, columns).

    Args:
        box: Left, upper, right and lower edge, as shares of the picture.
        rows: Rows of the grid.
        columns: Columns of the grid.
    """
    left, upper, right, lower = box
    x, y = np.arange(columns), np.arange(rows)
    is_across = (x < right * columns) & (x + 1 > left * columns)
    is_down = (y < lower * rows) & (y + 1 > upper * rows)
    cells: Region = is_down[:, None] & is_across
    return cells


def _point(weights: NDArray[np.float64], region: Region) -> tuple[float, float]:
    """Return whether weights point at a region, and how likely any cell would."""
    if weights.ndim != 2:
        raise DataError(
            f"Weights must be on a grid of rows and columns, but have the shape {weights.shape}."
        )
    cells = to_cells(region, *weights.shape)
    return float(cells[weights == weights.max()].mean()), float(cells.mean())


def _reach(pixels: Region, rows: int) -> Region:
    """Join rows of pixels to rows of cells: a cell is reached if any pixel in it is."""
    height = len(pixels)
    starts = [row * height // rows for row in range(rows)]
    ends = [-(-(row + 1) * height // rows) for row in range(rows)]
    return np.stack([pixels[a:b].any(0) for a, b in zip(starts, ends, strict=True)])
