import pytest
import torch

from regard.search.length_penalty import LENGTH_PENALTIES, length_scale
from regard.search.settings import SearchConfig


@pytest.mark.parametrize(("exponent", "expected"), [(0.0, 1.0), (0.5, 2.0), (1.0, 4.0)])
def test_length_to_the_power(exponent, expected):
    assert length_scale(4.0, SearchConfig(length_penalty=exponent)) == pytest.approx(expected)


@pytest.mark.parametrize(("length", "expected"), [(1.0, 1.0), (7.0, 2.0**0.6), (13.0, 3.0**0.6)])
def test_gnmt_is_five_plus_length_over_six_to_the_power(length, expected):
    config = SearchConfig(length_penalty_kind="gnmt", length_penalty=0.6)
    assert length_scale(length, config) == pytest.approx(expected)


@pytest.mark.parametrize("kind", LENGTH_PENALTIES)
def test_tensors_have_the_scales_of_their_lengths(kind):
    config = SearchConfig(length_penalty_kind=kind, length_penalty=0.7)
    lengths = [1.0, 4.0, 30.0]
    expected = [length_scale(length, config) for length in lengths]
    assert length_scale(torch.tensor(lengths), config).tolist() == pytest.approx(expected)
    assert expected == sorted(expected)
