"""Pointing accuracy: whether the cell of largest weight overlaps the region."""

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.metrics.vision.regions import box_region, pointing_accuracy, to_cells


def peak(row, column, rows=4, columns=4):
    weights = np.full((rows, columns), 0.01)
    weights[row, column] = 0.5
    return weights


def region(top, left, low, right, size=16):
    mask = np.zeros((size, size), bool)
    mask[top:low, left:right] = True
    return mask


THING = region(5, 9, 8, 12)
"""Region inside row 1 and column 2 of a 4 x 4 grid."""


def test_peak_inside_the_region_counts():
    weights = [[peak(1, 2), peak(1, 1), peak(0, 0)], [peak(1, 2)]]
    regions = [[THING, THING, None], [THING]]
    found = pointing_accuracy(weights, regions)
    assert found.value == pytest.approx(200 / 3)
    assert found.detail == {"right": 2, "count": 3, "chance": 100 / 16}


def test_uniform_weights_score_as_chance():
    whole = region(0, 0, 8, 16)
    found = pointing_accuracy([[np.full((4, 4), 1 / 16)]], [[whole]])
    assert found.value == found.detail["chance"] == 50


def test_cells_are_those_with_a_pixel_of_the_region():
    generator = np.random.default_rng(0)
    pixels = generator.random((12, 20)) < 0.05
    for rows, columns in ((4, 5), (5, 3), (12, 20), (24, 40)):
        expected = np.zeros((rows, columns), bool)
        for y, x in zip(*np.nonzero(pixels), strict=True):
            for row in range(rows):
                for column in range(columns):
                    is_down = row * 12 < (y + 1) * rows and (row + 1) * 12 > y * rows
                    is_across = column * 20 < (x + 1) * columns and (column + 1) * 20 > x * columns
                    expected[row, column] |= is_down and is_across
        assert np.array_equal(to_cells(pixels, rows, columns), expected)


def test_region_of_a_box_equals_that_of_its_pixels():
    box = np.array([3, 5, 9, 16]) / 16
    assert np.array_equal(box_region(box, 4, 4), to_cells(region(5, 3, 16, 9), 4, 4))
    assert np.array_equal(box_region(box, 16, 16), region(5, 3, 16, 9))


def test_interval_resamples_sentences():
    weights = [[peak(1, 2)] * 3, [peak(0, 0)], [peak(1, 2)]]
    found = pointing_accuracy(weights, [[THING] * 3, [THING], [THING]], num_bootstrap=300)
    assert found.value == 80
    assert found.interval[0] < 80 <= found.interval[1] == 100
    assert found.signature == ("unit:word|point:argmax|hit:cell-overlaps-region|bs:300|seed:12345")


def test_sentence_with_missing_regions_is_refused():
    with pytest.raises(DataError, match="Sentence 0 must have a region.* 2 words, but has 1"):
        pointing_accuracy([[peak(0, 0), peak(0, 0)]], [[THING]])


def test_missing_sentences_are_refused():
    with pytest.raises(DataError, match="equal length, but there are 1 and 0"):
        pointing_accuracy([[peak(0, 0)]], [])


def test_regions_without_any_region_are_refused():
    with pytest.raises(DataError, match="at least one region"):
        pointing_accuracy([[peak(0, 0)]], [[None]])


def test_weights_without_a_grid_are_refused():
    with pytest.raises(DataError, match=r"on a grid.*\(16,\)"):
        pointing_accuracy([[np.ones(16)]], [[THING]])
