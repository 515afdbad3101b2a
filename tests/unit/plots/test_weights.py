import numpy as np
import pytest

from regard.core.errors import DataError
from regard.plots.weights import check_weights, greatest


def test_lists_become_an_array():
    assert check_weights([[1, 0]], ["a"], ["x", "y"]).shape == (1, 2)


def test_a_map_without_words_is_refused():
    with pytest.raises(DataError, match="at least one target word .* there are 0 and 2"):
        check_weights(np.zeros((0, 2)), [], ["x", "y"])


def test_another_shape_is_refused():
    with pytest.raises(DataError, match=r"\(1, 2\), but has the shape \(2, 1\)"):
        check_weights([[1], [0]], ["a"], ["x", "y"])


def test_weights_that_are_not_finite_are_refused():
    with pytest.raises(DataError, match="`weights` must be finite numbers"):
        check_weights([[float("nan")]], ["a"], ["x"])


def test_greatest_weight_is_drawn_darkest():
    assert greatest(np.array([[0.1, 0.4]])) == 0.4


def test_a_map_of_zeros_is_drawn_against_one():
    assert greatest(np.zeros((1, 2))) == 1.0
