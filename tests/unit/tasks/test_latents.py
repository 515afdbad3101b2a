import pytest
import torch

from regard.core.errors import ConfigError
from regard.tasks.latents import interpolate, num_active_units


def test_units_with_a_low_variance_are_inactive():
    torch.manual_seed(0)
    means = torch.randn(500, 4) * torch.tensor([1.0, 0.2, 0.05, 0.0]) + 7
    assert num_active_units(means) == 2


def test_interpolation_is_linear_and_includes_both_ends():
    torch.manual_seed(0)
    first, last = torch.randn(2, 9).unbind()
    latents = interpolate(first, last, 5)
    assert torch.equal(latents[0], first) and torch.equal(latents[-1], last)
    assert torch.allclose(latents[2], (first + last) / 2, atol=1e-6)
    assert torch.allclose(latents.diff(dim=0), ((last - first) / 4).expand(4, 9), atol=1e-6)


def test_interpolation_with_one_step_is_refused():
    with pytest.raises(ConfigError, match="`steps` must be between 2 and 100000, but is 1"):
        interpolate(torch.zeros(3), torch.ones(3), 1)
