"""Kernel of `regard.models.fused`: the sum of two states and its layer norm."""

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _kernel(
    states, update, weight, bias, output, EPSILON: tl.constexpr, D: tl.constexpr, W: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * D
    columns = tl.arange(0, W)
    is_real = columns < D
    total = tl.load(states + row + columns, mask=is_real, other=0.0).to(tl.float32)
    total += tl.load(update + row + columns, mask=is_real, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / D
    centred = tl.where(is_real, total - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / D + EPSILON)
    factor = tl.load(weight + columns, mask=is_real, other=0.0).to(tl.float32)
    offset = tl.load(bias + columns, mask=is_real, other=0.0).to(tl.float32)
    normed = centred * scale * factor + offset
    tl.store(output + row + columns, normed.to(output.dtype.element_ty), mask=is_real)


def add_norm(
    states: Tensor, update: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    """Return the layer norm of `states + update`, both (..., D) and contiguous."""
    dim = states.shape[-1]
    output = states.new_empty(states.shape)
    _kernel[(states.numel() // dim,)](
        states, update, weight, bias, output,
        EPSILON=epsilon, D=dim, W=triton.next_power_of_2(dim), num_warps=4 if dim > 256 else 2,
    )  # fmt: skip
    return output
