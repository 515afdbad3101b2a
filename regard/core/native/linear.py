"""Linear maps: on a CPU by oneDNN where that is faster than torch's own product; packed weights."""

import functools
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear as torch_linear
from torch.nn.functional import relu

from regard.core.native.kernels import ZERO_POINT, NativeProduct, Precision, is_fast, row_scales

MIN_PRODUCTS = 1 << 21
"""Products of two numbers from which the call of oneDNN costs less than it saves."""
MIN_CAST_ROWS = 512
"""Rows of inputs from which a further copy of the weights in bf16 does not matter."""


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Map inputs (..., D) by a weight (outputs × inputs) and a bias, as torch's `linear`.

    Torch copies the bias to the output before the product; oneDNN adds it in the product. In
    float32, torch multiplies by MKL, which takes twice the time of oneDNN on processors of AMD.
    """
    dtype = _common_dtype(inputs)
    if not _is_onednn_faster(inputs, weight, dtype):
        return torch_linear(inputs, weight, bias)
    tensors = (None if one is None else one.to(dtype) for one in (inputs, weight, bias))
    # Autocast must not convert them again.
    outputs: Tensor = _Linear.apply(*tensors)  # type: ignore[no-untyped-call]
    return outputs


def _common_dtype(inputs: Tensor) -> torch.dtype:
    """Return the dtype of products: that of mixed precision, or of the inputs."""
    is_float = inputs.dtype in (torch.float32, torch.bfloat16)
    if inputs.device.type == "cpu" and is_float and torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu")
    return inputs.dtype


def _is_onednn_faster(inputs: Tensor, weight: Tensor, dtype: torch.dtype) -> bool:
    num_rows = inputs.shape[:-1].numel()
    return (
        inputs.device.type == "cpu"
        and num_rows * weight.numel() >= MIN_PRODUCTS
        and weight.dtype in (torch.float32, torch.bfloat16)
        and not torch.compiler.is_compiling()
        and (
            _is_mkl_slow()
            if dtype == torch.float32
            else dtype == torch.bfloat16 and num_rows >= MIN_CAST_ROWS and _has_bf16()
        )
    )


@functools.cache
def _is_mkl_slow() -> bool:
    """Return whether MKL uses slower instructions than oneDNN on this processor."""
    has_mkl: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    return has_mkl and has_onednn() and "AuthenticAMD" in _vendor()


@functools.cache
def _has_bf16() -> bool:
    return has_onednn() and torch.cpu._is_avx512_bf16_supported()


def has_onednn() -> bool:
    """Return whether torch was built with oneDNN."""
    is_built: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return is_built and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _vendor() -> str:
    """Return a text that contains the vendor of the processor."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()


class _Linear(torch.autograd.Function):
    """Linear map by oneDNN."""

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        """Return outputs (..., D) of inputs (..., D)."""
        ctx.save_for_backward(inputs, weight)
        return multiply(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the gradients of inputs, weight and bias."""
        inputs, weight = ctx.saved_tensors
        needs_inputs, needs_weight, needs_bias = ctx.needs_input_grad
        rows = gradient.flatten(0, -2)
        return (
            multiply(gradient, weight.t()) if needs_inputs else None,
            _weight_gradient(rows, inputs.flatten(0, -2)) if needs_weight else None,
            rows.sum(0) if needs_bias else None,
        )


def multiply(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return inputs (..., D) times the transposed weight, plus a bias, by oneDNN on a CPU."""
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        # For a part of a larger matrix, oneDNN has slow reference code only.
        weight = weight.contiguous()
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return outputs


def _weight_gradient(gradient: Tensor, inputs: Tensor) -> Tensor:
    """Return the product (E, D) of the transposed gradient (N, E) and inputs (N, D)."""
    if gradient.dtype != torch.float32:
        return gradient.t() @ inputs
    # oneDNN copies the transposed first factor, so the smaller one is the first.
    if gradient.shape[1] <= inputs.shape[1]:
        return multiply(gradient.t(), inputs.t())
    return multiply(inputs.t(), gradient.t()).t()


Activation: TypeAlias = Literal["none", "relu"]
"""Function of the outputs of a product that is computed with it."""


class Product(Protocol):
    """Linear map of inputs (..., D) to outputs (..., E)."""

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map inputs to outputs of the same dtype."""

    def map(self, inputs: Tensor, activation: Activation = "none") -> Tensor:
        """Map inputs of any dtype to activated outputs in the dtype in which the product is."""


MIN_PACKED = 1 << 20
"""Elements of a float32 weight from which oneDNN's layout saves more than its call costs."""


class PlainProduct:
    """Torch's product, in the dtype of the weight."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map (..., D) to (..., E)."""
        return torch_linear(inputs, self.weight, self.bias)

    def map(self, inputs: Tensor, activation: Activation = "none") -> Tensor:
        """Map (..., D) to (..., E) and activate the outputs."""
        return _activate(self(inputs), activation)


class Fp32Product:
    """Product with a float32 weight (E, D), in the layout of oneDNN where that is faster."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.is_large = weight.numel() >= MIN_PACKED
        is_packed = has_onednn() and weight.dtype == torch.float32
        if is_packed and (self.is_large or _is_mkl_slow()):
            self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        else:
            self.packed = None

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map (..., D) to (..., E)."""
        return self.map(inputs)

    def map(self, inputs: Tensor, activation: Activation = "none") -> Tensor:
        """Map (..., D) to (..., E) and activate the outputs."""
        if self.packed is None:
            return _activate(linear(inputs, self.weight, self.bias), activation)
        if not self.is_large and inputs.shape[:-1].numel() == 1:
            # The call of oneDNN takes longer than the product of one row and a small matrix.
            return _activate(torch_linear(inputs, self.weight, self.bias), activation)
        return _multiply(inputs, self.packed, self.bias, activation=activation)


class Bf16Product:
    """Product with a weight (E, D) and inputs in bf16, summed in float32."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.bias = None if bias is None else bias.detach().bfloat16()
        self.weight = weight.detach().bfloat16()
        self.is_packed = has_onednn()
        if self.is_packed:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(self.weight)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map (..., D) to (..., E) in float32."""
        return self.map(inputs).float()

    def map(self, inputs: Tensor, activation: Activation = "none") -> Tensor:
        """Map (..., D) to (..., E) in bf16 and activate the outputs."""
        inputs = inputs.bfloat16()
        if self.is_packed:
            return _multiply(inputs, self.weight, self.bias, activation=activation)
        return _activate(torch_linear(inputs, self.weight, self.bias), activation)


def _activate(outputs: Tensor, activation: Activation) -> Tensor:
    return relu(outputs) if activation == "relu" else outputs


class Int8Product:
    """Product with a weight in 8-bit integers, one scale per output.

    Inputs are quantised with one scale per row, so a row does not depend on the others.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        weight = weight.detach().float()
        self.scales = row_scales(weight)[:, 0]
        quantised = (weight / self.scales[:, None]).round().to(torch.int8)
        self.zeros = torch.zeros(len(weight), dtype=torch.long)
        self.bias = None if bias is None else bias.detach().float()
        # The second argument is the expected shape of the inputs; any other works too.
        self.packed = torch.ops.onednn.qlinear_prepack(quantised, None)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map (..., D) to (..., E)."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        scales = row_scales(rows)
        outputs: Tensor = torch.ops.onednn.qlinear_pointwise(
            # Unsigned, with 128 for zero: signed inputs have fast code on few processors only.
            (rows / scales).round_().add_(ZERO_POINT).to(torch.uint8),
            1.0,
            ZERO_POINT,
            self.packed,
            self.scales,
            self.zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        outputs.mul_(scales)
        if self.bias is not None:
            outputs.add_(self.bias)
        return outputs.view(*inputs.shape[:-1], -1)

    def map(self, inputs: Tensor, activation: Activation = "none") -> Tensor:
        """Map (..., D) to (..., E) and activate the outputs."""
        return _activate(self(inputs), activation)


def _multiply(
    inputs: Tensor, packed: Tensor, bias: Tensor | None, *, activation: Activation
) -> Tensor:
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, packed, bias, activation, [], "")
    return outputs


Build: TypeAlias = Callable[[Tensor, Tensor | None], Product]
"""Function of a weight (E, D) and a bias (E,) or None."""


def _fastest(precision: Precision, other: Build) -> Build:
    """Return the function that builds the fastest product in a precision on this processor."""

    def build(weight: Tensor, bias: Tensor | None) -> Product:
        is_plain = weight.device.type == "cpu" and weight.dtype == torch.float32
        if is_plain and is_fast(precision):
            return NativeProduct(weight, bias, precision)
        return other(weight, bias)

    return build


PRODUCTS: dict[str, Build] = {
    "fp32": _fastest("fp32", Fp32Product),
    "bf16": _fastest("bf16", Bf16Product),
    "int8": _fastest("int8", Int8Product),
}
"""Products by precision."""
