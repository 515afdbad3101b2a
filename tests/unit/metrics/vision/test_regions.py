"""Metrics of boxes and cells, compared with counts of pixels and confusion matrices."""

import numpy as np
import pytest

from regard.core.errors import ConfigError, DataError
from regard.metrics.vision.regions import (
    box_accuracy,
    box_iou,
    cell_accuracy,
    mask_iou,
    mean_box_iou,
    mean_iou,
    parse_box,
    parse_cells,
)

MEASURES = [mean_box_iou, box_accuracy, cell_accuracy, mean_iou]
BOXES = (["0 0 2 2", "0 0 1 1", "0 0 1 1"], [["1 1 3 3"], ["0 0 1 2"], ["2 2 3 3", "0 0 1 1"]])
CELLS = (["aab bba", "abb bbb"], [["aab abb"], ["abb bbb"]])


def random_boxes(seed, num=30, size=20):
    generator = np.random.default_rng(seed)
    corners = np.sort(generator.integers(0, size + 1, (num, 2, 2)), axis=1)
    return corners.reshape(num, 4)


def to_mask(box, size=20):
    mask = np.zeros((size, size), bool)
    mask[box[1] : box[3], box[0] : box[2]] = True
    return mask


def test_iou_of_boxes_equals_that_of_their_pixels():
    one, other = random_boxes(1), random_boxes(2)
    masks = [np.stack([to_mask(box) for box in boxes]) for boxes in (one, other)]
    assert box_iou(one, other) == pytest.approx(mask_iou(*masks))
    assert box_iou(one, other).max() > 0.2


def test_iou_equals_values_by_hand():
    assert box_iou([0, 0, 2, 2], [1, 1, 3, 3]) == pytest.approx(1 / 7)
    assert box_iou([0, 0, 1, 1], [2, 2, 3, 3]) == 0
    assert box_iou([0, 0, 0, 0], [0, 0, 0, 0]) == 0


def test_best_of_several_references_counts():
    assert mean_box_iou(*BOXES).value == pytest.approx(100 * (1 / 7 + 1 / 2 + 1) / 3)
    found = box_accuracy(*BOXES)
    assert found.value == pytest.approx(200 / 3)
    assert found.detail == {"right": 2, "count": 3}


def test_cell_accuracy_by_hand():
    assert cell_accuracy(*CELLS).value == pytest.approx(100 * 10 / 12)


def test_mean_iou_equals_that_of_the_confusion_matrix():
    generator = np.random.default_rng(0)
    letters = np.array(list("abcd"))
    predictions, truths = letters[generator.integers(0, 4, (2, 5, 3, 6))]
    table = np.zeros((4, 4))
    for predicted, truth in zip(predictions.ravel(), truths.ravel(), strict=True):
        table["abcd".index(truth), "abcd".index(predicted)] += 1
    expected = np.diag(table) / (table.sum(0) + table.sum(1) - np.diag(table))
    texts = [
        [" ".join("".join(row) for row in one) for one in side] for side in (predictions, truths)
    ]
    found = mean_iou(texts[0], [[text] for text in texts[1]])
    assert found.value == pytest.approx(100 * expected.mean())
    assert found.detail["IoU c"] == pytest.approx(100 * expected[2])
    assert found.signature == "unit:patch|average:label|labels:4"


def test_label_that_is_only_predicted_has_an_iou_of_zero():
    assert mean_iou(["ab"], [["aa"]]).detail == {"IoU a": 50, "IoU b": 0}


@pytest.mark.parametrize("measure", MEASURES)
def test_interval_contains_the_value_and_is_in_the_signature(measure):
    values = BOXES if measure in (mean_box_iou, box_accuracy) else CELLS
    found = measure(*values, num_bootstrap=200)
    low, high = found.interval
    assert low <= found.value <= high
    assert low < high
    assert found.signature.endswith("|bs:200|seed:12345")
    assert found == measure(*values, num_bootstrap=200)


def test_resample_without_a_label_omits_it_from_the_mean():
    found = mean_iou(["aa", "bb"], [["aa"], ["bb"]], num_bootstrap=50)
    assert found.interval == (100, 100)


@pytest.mark.parametrize("text", ["1 2 3", "a b c d", ""])
def test_invalid_box_is_refused(text):
    with pytest.raises(DataError, match=f"four numbers.*but is '{text}'"):
        parse_box(text)


def test_box_with_swapped_edges_is_refused():
    with pytest.raises(DataError, match="left edge first.*'3 0 1 2'"):
        parse_box("3 0 1 2")


@pytest.mark.parametrize("text", ["ab a", ""])
def test_ragged_cells_are_refused(text):
    with pytest.raises(DataError, match="rows of equal length"):
        parse_cells(text)


def test_cells_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"`hypotheses\[1\]`.*\(1, 2\), but has \(2, 1\)"):
        cell_accuracy(["ab", "a b"], [["ab"], ["ab"]])


def test_negative_number_of_resamples_is_refused():
    with pytest.raises(ConfigError, match="`num_bootstrap` must be at least 0"):
        mean_iou(*CELLS, num_bootstrap=-1)
