import pytest
import torch

from regard.core.errors import ConfigError
from regard.tasks.latents import interpolate, num_active_units


def test_numbers_that_never_change_are_not_in_use():
    torch.manual_seed(0)
    codes = torch.randn(500, 4) * torch.tensor([1.0, 0.2, 0.05, 0.0]) + 7
    assert num_active_units(codes) == 2


def test_mixed_codes_begin_and_end_exactly_with_the_given_ones():
    torch.manual_seed(0)
    first, last = torch.randn(2, 9).unbind()
    mixed = interpolate(first, last, 5)
    assert torch.equal(mixed[0], first) and torch.equal(mixed[-1], last)
    assert torch.allclose(mixed[2], (first + last) / 2, atol=1e-6)
    assert torch.allclose(mixed.diff(dim=0), ((last - first) / 4).expand(4, 9), atol=1e-6)


def test_a_line_has_two_ends():
    with pytest.raises(ConfigError, match="`steps` must be between 2 and 100000, but is 1"):
        interpolate(torch.zeros(3), torch.ones(3), 1)
