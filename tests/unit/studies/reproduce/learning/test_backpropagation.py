import math

import pytest
import torch

from regard.studies.reproduce.learning.backpropagation import (
    autograd,
    finite_differences,
    forward,
    gradients,
    random_network,
    small_network,
)


def assert_equal(one, other, tolerance):
    for of_one, of_other in zip(one, other, strict=True):
        for a, b in zip(of_one, of_other, strict=True):
            assert torch.allclose(a, b, atol=tolerance, rtol=0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_formulas_equal_autograd_and_finite_differences(seed):
    case = random_network(seed)
    assert_equal(gradients(*case), autograd(*case), 1e-14)
    assert_equal(gradients(*case), finite_differences(*case), 1e-9)


def test_worked_example():
    network, x, y = small_network()
    sums, activations = forward(network, x)
    weights, deltas = gradients(network, x, y)
    assert sums[0].tolist() == [0.0, 0.25]
    hidden = 1 / (1 + math.exp(-0.25))
    z = 0.5 - 2 * hidden + 0.5
    output = 1 / (1 + math.exp(-z))
    assert activations[-1].item() == pytest.approx(output)
    delta = output * (1 - output) * (output - 1)
    assert deltas[1].item() == pytest.approx(delta)
    assert deltas[0].tolist() == pytest.approx(
        [0.25 * 1 * delta, hidden * (1 - hidden) * -2 * delta]
    )
    assert weights[1][0].tolist() == pytest.approx([0.5 * delta, hidden * delta])
