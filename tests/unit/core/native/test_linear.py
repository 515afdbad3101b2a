"""Products by oneDNN equal those of torch, in the forward and the backward pass."""

import pytest
import torch
from torch.nn.functional import linear as torch_linear
from torch.utils._python_dispatch import TorchDispatchMode

from regard.core.native import linear as module
from regard.core.native.linear import MIN_CAST_ROWS, MIN_PRODUCTS, linear

ROWS, INPUTS, OUTPUTS = 640, 64, 96
assert ROWS * INPUTS * OUTPUTS >= MIN_PRODUCTS and ROWS >= MIN_CAST_ROWS

needs_onednn = pytest.mark.skipif(not module.has_onednn(), reason="torch was built without oneDNN")


@pytest.fixture
def calls(monkeypatch):
    """Use oneDNN on every processor; return the dtypes of the products that it computed."""
    dtypes = []
    monkeypatch.setattr(module, "_is_mkl_slow", lambda: True)
    original = module._Linear.apply

    def apply(inputs, weight, bias):
        dtypes.append(inputs.dtype)
        return original(inputs, weight, bias)

    monkeypatch.setattr(module._Linear, "apply", apply)
    return dtypes


def tensors(*shape, has_bias):
    torch.manual_seed(1)
    inputs = torch.randn(*shape, INPUTS, requires_grad=True)
    weight = torch.randn(OUTPUTS, INPUTS, requires_grad=True)
    bias = torch.randn(OUTPUTS, requires_grad=True) if has_bias else None
    return [one for one in (inputs, weight, bias) if one is not None]


@needs_onednn
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("shape", [(ROWS,), (20, 32)], ids=["rows", "batch"])
def test_outputs_and_gradients_equal_those_of_torch(calls, shape, has_bias):
    parts = tensors(*shape, has_bias=has_bias)
    outputs, expected = linear(*parts), torch_linear(*parts)
    assert calls == [torch.float32]
    torch.testing.assert_close(outputs, expected, atol=1e-4, rtol=1e-5)
    factor = torch.randn_like(outputs)
    ours = torch.autograd.grad(outputs, parts, factor)
    torchs = torch.autograd.grad(expected, parts, factor)
    for one, other in zip(ours, torchs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-5)


@needs_onednn
def test_frozen_weights_have_no_gradient(calls):
    inputs, weight, bias = tensors(ROWS, has_bias=True)
    linear(inputs, weight.requires_grad_(False), bias.requires_grad_(False)).sum().backward()
    assert weight.grad is None
    assert bias.grad is None
    torch.testing.assert_close(inputs.grad[0], weight.sum(0), atol=1e-4, rtol=1e-5)
    assert len(calls) == 1


def test_few_products_and_other_dtypes_are_left_to_torch(calls):
    inputs, weight, bias = tensors(2, has_bias=True)
    assert torch.equal(linear(inputs, weight, bias), torch_linear(inputs, weight, bias))
    doubles = [one.detach().double() for one in tensors(ROWS, has_bias=True)]
    assert torch.equal(linear(*doubles), torch_linear(*doubles))
    assert calls == []


@pytest.mark.skipif(not module._has_bf16(), reason="the processor has no bf16 instructions")
def test_mixed_precision_equals_that_of_torch(calls):
    parts = tensors(ROWS, has_bias=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, expected = linear(*parts), torch_linear(*parts)
    assert calls == [torch.bfloat16]
    assert outputs.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(outputs, expected, atol=0.1, rtol=0.02)
    ours = torch.autograd.grad(outputs.sum(), parts)
    torchs = torch.autograd.grad(expected.sum(), parts)
    for one, other in zip(ours, torchs, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, atol=0.5, rtol=0.02)


class _Weights(TorchDispatchMode):
    """Keeps the weights that are passed to oneDNN."""

    def __init__(self):
        super().__init__()
        self.weights = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "_linear_pointwise" in str(func):
            self.weights.append(args[1])
        return func(*args, **kwargs or {})


@needs_onednn
@pytest.mark.parametrize("is_transposed", [False, True])
def test_parts_of_a_larger_matrix_are_copied_since_onednn_is_slow_on_them(calls, is_transposed):
    inputs = torch.randn(ROWS, 2 * INPUTS, requires_grad=True)
    whole = torch.randn(2 * INPUTS, 2 * OUTPUTS, requires_grad=True)
    weight = whole[:INPUTS, :OUTPUTS].t() if is_transposed else whole.view(2 * OUTPUTS, -1)[:, :64]
    part = inputs[:, :INPUTS]
    with _Weights() as recorded:
        outputs = linear(part, weight)
        outputs.sum().backward()
    assert len(recorded.weights) == 3
    assert all(one.is_contiguous() or one.t().is_contiguous() for one in recorded.weights)
    torch.testing.assert_close(outputs, part @ weight.t(), atol=1e-4, rtol=1e-5)
