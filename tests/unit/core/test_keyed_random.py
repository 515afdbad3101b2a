import numpy as np
import pytest

from regard.core.keyed_random import uniform


def test_numbers_are_uniform():
    found = uniform((1, 0), np.arange(1000), 50)
    assert found.min() >= 0
    assert found.max() < 1
    shares, _ = np.histogram(found, bins=10, range=(0, 1))
    assert shares / found.size == pytest.approx(0.1, abs=0.005)


def test_neighbouring_rows_columns_and_keys_are_uncorrelated():
    one = uniform((1, 0), np.arange(2000), 20)
    for other in (
        uniform((1, 1), np.arange(2000), 20),
        uniform((2, 0), np.arange(2000), 20),
        uniform((1, 0), np.arange(1, 2001), 20),
    ):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(one[:, 0], one[:, 1])[0, 1]) < 0.06


def test_numbers_of_a_row_do_not_depend_on_other_rows():
    whole = uniform((3,), np.arange(10), 8)
    assert (uniform((3,), np.array([7, 2]), 5) == whole[[7, 2], :5]).all()
