"""The density around a drawn image, against torch's own."""

import pytest
import torch
from torch.distributions import Normal

from regard.training.densities import gaussian


@pytest.mark.parametrize("deviation", [1.0, 0.1])
def test_cost_is_the_negative_log_density_of_a_normal_distribution(deviation):
    drawn, right = torch.rand(2, 4, 3, 5, 6, requires_grad=True).unbind(0)
    found = gaussian(drawn, right, deviation=deviation)
    expected = -Normal(drawn, deviation).log_prob(right).sum()
    torch.testing.assert_close(found.total, expected)
    torch.testing.assert_close(found.nll, expected.detach())
    assert not found.nll.requires_grad
    assert float(found.count) == 4 * 3 * 5 * 6


def test_other_axes_are_refused():
    with pytest.raises(ValueError, match="`drawn` must have the axes"):
        gaussian(torch.rand(3, 4), torch.rand(3, 4), deviation=1.0)
