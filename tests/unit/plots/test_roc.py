import numpy as np
import pytest

from regard.core.errors import DataError
from regard.plots.roc import detection

CURVES = {"errors": [(0.0, 0.0), (0.2, 0.9), (1.0, 1.0)]}


def test_shares_of_each_group_sum_to_one():
    numbers = {"normal": [1.0, 1.5, 2.0, 90.0], "odd": [2.0, 3.0]}
    left, _ = detection(numbers, CURVES, x_label="error", threshold=2.5).axes
    heights = [patch.get_data().values.sum() for patch in left.patches]
    assert heights == pytest.approx([1, 1])
    assert left.lines[0].get_xdata()[0] == 2.5


def test_names_stand_above_the_bars():
    figure = detection({"a": [1.0, 2.0], "b": [2.0]}, CURVES, x_label="error", threshold=1.5)
    figure.draw_without_rendering()
    left = figure.axes[0]
    assert left.get_legend().get_window_extent().y0 >= left.get_window_extent().y1


def test_curves_are_drawn_as_given_beside_chance():
    _, right = detection({"a": [1.0], "b": [2.0]}, CURVES, x_label="error").axes
    assert np.array(right.lines[0].get_xydata()) == pytest.approx(np.array(CURVES["errors"]))
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["errors", "chance"]


def test_equal_numbers_can_be_drawn():
    left, _ = detection({"a": [1.0, 1.0]}, CURVES, x_label="error").axes
    assert left.patches[0].get_data().values.sum() == 1


def test_empty_group_is_refused():
    with pytest.raises(DataError, match="every group must hold at least one number"):
        detection({"a": [1.0], "b": []}, CURVES, x_label="error")
