import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.image.field import ImageConfig, ImageField
from regard.data.standardize import from_moments


def test_moments_give_mean_and_std():
    values = np.random.default_rng(0).normal(3, 2, (500, 2))
    mean, std = from_moments(np.array([values.mean(0), (values**2).mean(0)]), 0.1)
    assert np.allclose(mean, values.mean(0)) and np.allclose(std, values.std(0))


def test_std_has_a_minimum():
    assert from_moments(np.array([[2.0], [4.0]]), 0.1) == ([2.0], [0.1])


def test_statistics_broadcast_over_the_axes_after_the_channels():
    field = ImageField(ImageConfig(), (1.0, 2.0, 3.0), (3.0, 4.0, 5.0))
    mean, std = field.statistics(torch.device("cpu"))
    assert mean.shape == std.shape == (3, 1, 1)
    assert field.statistics(torch.device("cpu"))[0] is mean


def test_a_wrong_number_of_statistics_is_refused():
    with pytest.raises(ConfigError, match=r"`channels` \(3\) values each, but have 2 and 3"):
        ImageField(ImageConfig(), (0.0, 0.0), (1.0, 1.0, 1.0))
