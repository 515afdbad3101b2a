import pytest
import torch

from regard.core.module import MIN_JOINT_ROWS, Linear, apply_jointly


@pytest.mark.parametrize("num_rows", [4, MIN_JOINT_ROWS], ids=["one by one", "jointly"])
@pytest.mark.parametrize("has_bias", [True, False])
def test_joint_products_equal_single_ones(num_rows, has_bias):
    torch.manual_seed(0)
    layers = [Linear(6, width, bias=has_bias) for width in (6, 3, 9)]
    inputs = torch.randn(2, num_rows, 6, requires_grad=True)
    outputs = apply_jointly(layers, inputs)
    expected = [layer(inputs) for layer in layers]
    for one, other in zip(outputs, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    ours, theirs = (
        torch.autograd.grad(sum(one.square().sum() for one in several), [inputs, *parameters])
        for several in (outputs, expected)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-4)
