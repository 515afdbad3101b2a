"""Regions of a picture against regions: boxes, labelled cells, and where words point.

Boxes and cells come as text, as models answer with them: a box as `0.1 0.2 0.5 0.6`, its left,
upper, right and lower edge; cells as a letter each, row by row, rows apart by blanks.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.metrics.bootstrap import bootstrap_interval, ratio, with_resampling
from regard.metrics.result import References, Result, Texts, check_equal_length, check_references

Numbers = NDArray[np.float64]
Cells = NDArray[np.str_]
Region = NDArray[np.bool_]
"""Which pixels, or cells of any size, belong to something: (Y, X)."""


def parse_box(text: str) -> tuple[float, float, float, float]:
    """Read a box: left, upper, right and lower edge."""
    try:
        left, upper, right, lower = map(float, text.split())
    except ValueError:
        raise DataError(
            f"A box must be four numbers, left, upper, right and lower edge, but is '{text}'."
        ) from None
    if not (left <= right and upper <= lower):
        raise DataError(
            f"A box must have its left edge first and its upper edge second, but is '{text}'."
        )
    return left, upper, right, lower


def parse_cells(text: str) -> Cells:
    """Read labelled cells, one letter each: (rows, columns)."""
    rows = text.split()
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(
            "Cells must be rows of equally many letters, apart by blanks, but are "
            f"{[len(row) for row in rows]} letters long."
        )
    return np.array([list(row) for row in rows])


def box_iou(predicted: ArrayLike, right: ArrayLike) -> Numbers:
    """Return what two boxes share by what they cover together, 0 to 1 (Jaccard 1912).

    Args:
        predicted: (..., 4), left, upper, right and lower edges.
        right: (..., 4), likewise.
    """
    one, other = np.asarray(predicted, float), np.asarray(right, float)
    low, high = np.maximum(one[..., :2], other[..., :2]), np.minimum(one[..., 2:], other[..., 2:])
    shared = np.clip(high - low, 0, None).prod(-1)
    together = _area(one) + _area(other) - shared
    return np.where(together > 0, shared / np.where(together > 0, together, 1), 0.0)


def mask_iou(predicted: ArrayLike, right: ArrayLike) -> Numbers:
    """Return how many pixels two masks share by how many they cover together, 0 to 1.

    Args:
        predicted: (..., Y, X), bool.
        right: (..., Y, X), bool. Two that are empty share nothing.
    """
    one, other = np.asarray(predicted, bool), np.asarray(right, bool)
    shared, together = (one & other).sum((-2, -1)), (one | other).sum((-2, -1))
    return np.asarray(shared / np.maximum(together, 1))


def mean_box_iou(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure what predicted boxes share with the right ones, in percent, on average.

    Args:
        hypotheses: One box each.
        references: For each of them the right box; of several, the one that it shares most with.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    shares = _best_shares(hypotheses, references)
    signature, detail = "unit:box|average:example", {"count": len(shares)}
    return ratio("box IoU", shares, signature=signature, num_bootstrap=num_bootstrap, detail=detail)


def box_accuracy(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure how many boxes share at least half with the right ones, in percent: accuracy@0.5.

    Args:
        hypotheses: One box each.
        references: For each of them the right box; of several, the one that it shares most with.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    hits = [share >= 0.5 for share in _best_shares(hypotheses, references)]
    signature, sums = "unit:box|hit:IoU>=0.5", ("right", "count")
    return ratio("accuracy@0.5", hits, signature=signature, num_bootstrap=num_bootstrap, sums=sums)


def cell_accuracy(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure how many cells have the right label, in percent.

    Args:
        hypotheses: Labelled cells.
        references: For each of them the right ones; the first counts.
        num_bootstrap: Number of resamples behind the confidence interval, drawn picture by
            picture; 0 means no interval.
    """
    pairs = _read_pairs(hypotheses, references)
    hits = [float((guess == truth).sum()) for guess, truth in pairs]
    wholes = [truth.size for _, truth in pairs]
    return ratio(
        "patch accuracy",
        hits,
        wholes,
        signature="unit:patch|average:corpus",
        num_bootstrap=num_bootstrap,
        sums=("right", "count"),
    )


def mean_iou(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure what predicted regions share with the right ones, in percent: the mean over labels.

    Everingham et al. 2010: for each label, cells that have it on both sides by cells that have it
    on either side, counted over all pictures. Its detail tells each label's share.

    Args:
        hypotheses: Labelled cells.
        references: For each of them the right ones; the first counts.
        num_bootstrap: Number of resamples behind the confidence interval, drawn picture by
            picture; 0 means no interval.
    """
    pairs = _read_pairs(hypotheses, references)
    names = sorted({str(name) for pair in pairs for cells in pair for name in np.unique(cells)})
    # For each picture and label: cells on both sides, cells on either side.
    counts = np.array(
        [
            [((g == name) & (t == name)).sum(), ((g == name) | (t == name)).sum()]
            for g, t in pairs
            for name in names
        ],
        dtype=float,
    ).reshape(len(pairs), len(names), 2)
    shares = _shares(counts.sum(0))

    def resampled(times: NDArray[np.intp]) -> float:
        # A label that a sample has nothing of is left out of its mean.
        return 100 * float(np.nanmean(_shares(np.tensordot(times, counts, 1))))

    signature = f"unit:patch|average:label|labels:{len(names)}"
    return Result(
        name="mean IoU",
        value=100 * float(shares.mean()),
        signature=with_resampling(signature, num_bootstrap),
        interval=bootstrap_interval(resampled, len(pairs), num_bootstrap),
        detail={f"IoU {name}": 100 * float(s) for name, s in zip(names, shares, strict=True)},
    )


def _shares(counts: Numbers) -> Numbers:
    """Return shared by together for each label, (labels, 2); nan for one that does not occur."""
    shared, together = counts[:, 0], counts[:, 1]
    return np.where(together > 0, shared / np.maximum(together, 1), np.nan)


def _best_shares(hypotheses: Texts, references: References) -> list[float]:
    check_references(hypotheses, references)
    return [
        max(float(box_iou(parse_box(guess), parse_box(truth))) for truth in truths)
        for guess, truths in zip(hypotheses, references, strict=True)
    ]


def _read_pairs(hypotheses: Texts, references: References) -> list[tuple[Cells, Cells]]:
    check_references(hypotheses, references)
    pairs = []
    for place, (guess, truths) in enumerate(zip(hypotheses, references, strict=True)):
        predicted, right = parse_cells(guess), parse_cells(truths[0])
        if predicted.shape != right.shape:
            raise DataError(
                f"`hypotheses[{place}]` must have as many rows and columns as its reference, "
                f"{right.shape}, but has {predicted.shape}."
            )
        pairs.append((predicted, right))
    return pairs


def _area(boxes: Numbers) -> Numbers:
    return np.asarray((boxes[..., 2:] - boxes[..., :2]).prod(-1))


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
    check_equal_length({"weights": weights, "regions": regions})
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
        sums=("right", "count"),
        detail={"chance": 100 * sum(chances) / sum(wholes)},
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
