import math

import pytest
import torch

from regard.core.errors import ConfigError
from regard.models.convolutional import SQRT_HALF, ConvolutionConfig, GatedConvolution


@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_gated_convolution_is_a_window_times_its_gate(kernel):
    torch.manual_seed(0)
    layer, states = GatedConvolution(3, kernel), torch.randn(2, 5, 3)
    out = layer(states)
    weight, bias = layer.convolution.weight, layer.convolution.bias  # (2D, D, K)
    assert out.shape == (2, 5 - kernel + 1, 3)
    for row in range(2):
        for position in range(out.shape[1]):
            seen = states[row, position : position + kernel]
            both = [(weight[i].T * seen).sum().item() + bias[i].item() for i in range(6)]
            for i in range(3):
                expected = both[i] / (1 + math.exp(-both[3 + i]))
                assert out[row, position, i].item() == pytest.approx(expected, abs=1e-5)


def test_scaled_sum_keeps_the_variance():
    torch.manual_seed(0)
    first, second = torch.randn(2, 5000)
    assert ((first + second) * SQRT_HALF).var().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", ["embedding_dim", "dim", "num_layers", "kernel", "max_length"])
def test_sizes_are_at_least_one(name):
    with pytest.raises(ConfigError, match=rf"^`{name}` must be at least 1, but is 0\.$"):
        ConvolutionConfig(**{name: 0})


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_dropout_has_limits(dropout):
    with pytest.raises(ConfigError, match=r"^`dropout` must be between 0\.0 and 0\.99, but is "):
        ConvolutionConfig(dropout=dropout)
