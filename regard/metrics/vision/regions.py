"""Metrics of image regions: box IoU, segmentation of patches, pointing of attention.

Boxes and patch labels are texts, the output format of the models. A box is `0.1 0.2 0.5 0.6`:
left, upper, right and lower edge. Patch labels are one letter each, with whitespace between
rows.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.metrics.bootstrap import bootstrap_interval, ratio, with_resampling
from regard.metrics.result import References, Result, Texts, check_equal_length, check_references

Array = NDArray[np.float64]
Cells = NDArray[np.str_]
Region = NDArray[np.bool_]
"""Mask of pixels or grid cells, (Y, X)."""


def parse_box(text: str) -> tuple[float, float, float, float]:
    """Parse a box: left, upper, right and lower edge."""
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
    """Parse labelled cells, one letter each: (rows, columns)."""
    rows = text.split()
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(
            "Cells must be rows of equal length, separated by whitespace, but the rows have "
            f"{[len(row) for row in rows]} letters."
        )
    return np.array([list(row) for row in rows])


def box_iou(predicted: ArrayLike, targets: ArrayLike) -> Array:
    """Return the intersection over union of boxes, 0 to 1 (Jaccard 1912).

    Args:
        predicted: (..., 4), boxes as (left, upper, right, lower).
        targets: (..., 4), boxes in the same format.
    """
    one, other = np.asarray(predicted, float), np.asarray(targets, float)
    low, high = np.maximum(one[..., :2], other[..., :2]), np.minimum(one[..., 2:], other[..., 2:])
    intersection = np.clip(high - low, 0, None).prod(-1)
    union = _area(one) + _area(other) - intersection
    return np.where(union > 0, intersection / np.where(union > 0, union, 1), 0.0)


def mask_iou(predicted: ArrayLike, targets: ArrayLike) -> Array:
    """Return the intersection over union of masks, 0 to 1; 0 for two empty masks.

    Args:
        predicted: (..., Y, X), bool.
        targets: (..., Y, X), bool.
    """
    one, other = np.asarray(predicted, bool), np.asarray(targets, bool)
    intersection, union = (one & other).sum((-2, -1)), (one | other).sum((-2, -1))
    return np.asarray(intersection / np.maximum(union, 1))


def mean_box_iou(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute the mean IoU of predicted and target boxes, in percent.

    Args:
        hypotheses: One box each.
        references: One or more target boxes per hypothesis; the one of largest IoU counts.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    ious = _best_ious(hypotheses, references)
    signature, detail = "unit:box|average:example", {"count": len(ious)}
    return ratio("box IoU", ious, signature=signature, num_bootstrap=num_bootstrap, detail=detail)


def box_accuracy(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute accuracy@0.5: the percentage of boxes with an IoU of at least 0.5.

    Args:
        hypotheses: One box each.
        references: One or more target boxes per hypothesis; the one of largest IoU counts.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    hits = [iou >= 0.5 for iou in _best_ious(hypotheses, references)]
    signature, sums = "unit:box|hit:IoU>=0.5", ("right", "count")
    return ratio("accuracy@0.5", hits, signature=signature, num_bootstrap=num_bootstrap, sums=sums)


def cell_accuracy(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute the percentage of cells with the correct label.

    Args:
        hypotheses: Labelled cells.
        references: Target cells of each hypothesis; the first reference counts.
        num_bootstrap: Number of bootstrap resamples of images; 0 means no confidence interval.
    """
    pairs = _read_pairs(hypotheses, references)
    hits = [float((predicted == target).sum()) for predicted, target in pairs]
    totals = [target.size for _, target in pairs]
    return ratio(
        "patch accuracy",
        hits,
        totals,
        signature="unit:patch|average:corpus",
        num_bootstrap=num_bootstrap,
        sums=("right", "count"),
    )


def mean_iou(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute the mean IoU over labels, in percent.

    Everingham et al. 2010: the IoU of each label is counted over the cells of all images. The
    detail has the IoU of each label.

    Args:
        hypotheses: Labelled cells.
        references: Target cells of each hypothesis; the first reference counts.
        num_bootstrap: Number of bootstrap resamples of images; 0 means no confidence interval.
    """
    pairs = _read_pairs(hypotheses, references)
    names = sorted({str(name) for pair in pairs for cells in pair for name in np.unique(cells)})
    # For each image and label: cells in the intersection, cells in the union.
    counts = np.array(
        [
            [((p == name) & (t == name)).sum(), ((p == name) | (t == name)).sum()]
            for p, t in pairs
            for name in names
        ],
        dtype=float,
    ).reshape(len(pairs), len(names), 2)
    ious = _label_ious(counts.sum(0))

    def resampled(times: NDArray[np.intp]) -> float:
        # Labels that do not occur in a resample are left out of its mean.
        return 100 * float(np.nanmean(_label_ious(np.tensordot(times, counts, 1))))

    signature = f"unit:patch|average:label|labels:{len(names)}"
    return Result(
        name="mean IoU",
        value=100 * float(ious.mean()),
        signature=with_resampling(signature, num_bootstrap),
        interval=bootstrap_interval(resampled, len(pairs), num_bootstrap),
        detail={f"IoU {name}": 100 * float(s) for name, s in zip(names, ious, strict=True)},
    )


def _label_ious(counts: Array) -> Array:
    """Return the IoU of each label from counts (labels, 2); NaN for labels that do not occur."""
    intersection, union = counts[:, 0], counts[:, 1]
    return np.where(union > 0, intersection / np.maximum(union, 1), np.nan)


def _best_ious(hypotheses: Texts, references: References) -> list[float]:
    check_references(hypotheses, references)
    return [
        max(float(box_iou(parse_box(text), parse_box(box))) for box in boxes)
        for text, boxes in zip(hypotheses, references, strict=True)
    ]


def _read_pairs(hypotheses: Texts, references: References) -> list[tuple[Cells, Cells]]:
    check_references(hypotheses, references)
    pairs = []
    for index, (hypothesis, texts) in enumerate(zip(hypotheses, references, strict=True)):
        predicted, target = parse_cells(hypothesis), parse_cells(texts[0])
        if predicted.shape != target.shape:
            raise DataError(
                f"`hypotheses[{index}]` must have as many rows and columns as its reference, "
                f"{target.shape}, but has {predicted.shape}."
            )
        pairs.append((predicted, target))
    return pairs


def _area(boxes: Array) -> Array:
    return np.asarray((boxes[..., 2:] - boxes[..., :2]).prod(-1))


def pointing_accuracy(
    weights: Sequence[Sequence[ArrayLike]],
    regions: Sequence[Sequence[Region | None]],
    *,
    num_bootstrap: int = 0,
) -> Result:
    """Compute the percentage of words whose largest weight is on the region that they name.

    If several cells have the largest weight, the word counts by the share of them in the region.
    Uniform weights then score as chance, which is in the detail.

    Args:
        weights: For each word of each sentence, attention weights over a grid (rows, columns).
        regions: For each word of each sentence, the region that it names; None for words that
            name none and are not counted.
        num_bootstrap: Number of bootstrap resamples of sentences; 0 means no confidence interval.
    """
    check_equal_length({"weights": weights, "regions": regions})
    hits, chances, counts = [], [], []
    for index, (maps, masks) in enumerate(zip(weights, regions, strict=True)):
        if len(maps) != len(masks):
            raise DataError(
                f"Sentence {index} must have a region or None for each of its {len(maps)} words, "
                f"but has {len(masks)}."
            )
        pairs = [(np.asarray(w, float), m) for w, m in zip(maps, masks, strict=True)]
        scores = [_score_pointing(grid, region) for grid, region in pairs if region is not None]
        hits.append(sum(hit for hit, _ in scores))
        chances.append(sum(chance for _, chance in scores))
        counts.append(len(scores))
        if not sum(counts):
            raise DataError("`regions` must hold at least one region, but has none.")
    return ratio(
        "pointing accuracy",
        hits,
        counts,
        signature="unit:word|point:argmax|hit:cell-overlaps-region",
        num_bootstrap=num_bootstrap,
        sums=("right", "count"),
        detail={"chance": 100 * sum(chances) / sum(counts)},
    )


def to_cells(region: ArrayLike, rows: int, columns: int) -> Region:
    """Return the cells of a grid that a region overlaps, (rows, columns).

    Args:
        region: (Y, X), bool, of any size; region and grid cover the same image.
        rows: Rows of the grid.
        columns: Columns of the grid.
    """
    pixels = np.asarray(region, bool)
    return _pool_rows(_pool_rows(pixels, rows).T, columns).T


def box_region(box: Sequence[float], rows: int, columns: int) -> Region:
    """Return the cells of a grid that a box overlaps, (rows, columns).

    Args:
        box: Left, upper, right and lower edge, relative to the size of the image.
        rows: Rows of the grid.
        columns: Columns of the grid.
    """
    left, upper, right, lower = box
    x, y = np.arange(columns), np.arange(rows)
    is_across = (x < right * columns) & (x + 1 > left * columns)
    is_down = (y < lower * rows) & (y + 1 > upper * rows)
    cells: Region = is_down[:, None] & is_across
    return cells


def _score_pointing(weights: NDArray[np.float64], region: Region) -> tuple[float, float]:
    """Return the share of cells of largest weight in the region, and the share of all cells."""
    if weights.ndim != 2:
        raise DataError(
            f"Weights must be on a grid of rows and columns, but have the shape {weights.shape}."
        )
    cells = to_cells(region, *weights.shape)
    return float(cells[weights == weights.max()].mean()), float(cells.mean())


def _pool_rows(pixels: Region, rows: int) -> Region:
    """Pool rows of pixels to rows of cells: a cell is True if any of its pixels is."""
    height = len(pixels)
    starts = [row * height // rows for row in range(rows)]
    ends = [-(-(row + 1) * height // rows) for row in range(rows)]
    return np.stack([pixels[a:b].any(0) for a, b in zip(starts, ends, strict=True)])
