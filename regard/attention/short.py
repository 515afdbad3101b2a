"""Fused attention of short sequences on a GPU: one kernel for the forward and one for the backward.

The kernels of torch split long sequences into tiles of 64 or 128 positions. Sentences are shorter
than a tile, so most of the work is padding, and 18 attention layers take a third of a training
step. Here one program computes one head of one sentence. Dropout masks are computed again in the
backward pass from a seed and the index of each weight.
"""

import importlib
import importlib.util
from typing import Any

import torch
from torch import Tensor

MAX_LENGTH = 64
"""Maximum number of queries and of keys."""
HEAD_DIMS = (16, 32, 64, 128)
"""Supported widths of a head."""


def is_supported(queries: Tensor, keys: Tensor, mask: Tensor | None) -> bool:
    """Return whether `short_attention` can compute a training step with these tensors.

    Args:
        queries: (B, H, Q, E).
        keys: (B, H, K, E).
        mask: (B, H, Q, K) or broadcastable; only (B, 1, 1, K) is supported.
    """
    is_short = max(queries.shape[2], keys.shape[2]) <= MAX_LENGTH
    is_padding_mask = mask is None or (mask.dim() == 4 and mask.shape[1:3] == (1, 1))
    return (
        queries.device.type == "cuda"
        and queries.dtype in (torch.bfloat16, torch.float16)
        and queries.requires_grad
        and is_short
        and is_padding_mask
        and queries.shape[1] == keys.shape[1]
        and queries.shape[3] in HEAD_DIMS
        and HAS_TRITON
    )


HAS_TRITON = torch.version.cuda is not None and importlib.util.find_spec("triton") is not None


def short_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None,
    is_causal: bool,
    dropout: float,
) -> Tensor:
    """Compute scaled dot-product attention (B, H, Q, E) of short sequences.

    Args:
        queries: (B, H, Q, E).
        keys: (B, H, K, E).
        values: (B, H, K, E).
        mask: (B, 1, 1, K), True = may attend; None = all.
        is_causal: Whether a query attends to keys up to its position only.
        dropout: Dropout probability of the weights.
    """
    seed = torch.randint(2**31 - 1, (), dtype=torch.int32, device=queries.device)
    if mask is not None:
        mask = mask[:, 0, 0].expand(len(queries), -1)
    context: Tensor = _attend(queries, keys, values, mask, seed, is_causal, dropout)  # (B, Q, H, E)
    return context.transpose(1, 2)


def _kernels() -> Any:
    """Return the kernels; Triton, which they need, is imported at their first use."""
    return importlib.import_module("regard.attention.kernels.short")


@torch.library.custom_op("regard::short_attention", mutates_args=())
def _attend(  # noqa: PLR0917
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    is_causal: bool,
    dropout: float,
) -> Tensor:
    context = _new_context(queries)
    _kernels().forward(
        (queries, keys, values), context, mask=mask, seed=seed, is_causal=is_causal, dropout=dropout
    )
    return context


@_attend.register_fake
def _(queries: Tensor, *_: Any) -> Tensor:
    return _new_context(queries)


def _new_context(queries: Tensor) -> Tensor:
    """Return an empty context (B, Q, H, E), the layout that the output projection reads."""
    batch, num_heads, length, head_dim = queries.shape
    return queries.new_empty(batch, length, num_heads, head_dim)


@torch.library.custom_op("regard::short_attention_backward", mutates_args=())
def _attend_backward(  # noqa: PLR0917
    gradient: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    is_causal: bool,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:
    gradients = (_new_context(queries), _new_context(keys), _new_context(values))
    _kernels().backward(
        (queries, keys, values),
        (gradient.contiguous(), *gradients),
        mask=mask,
        seed=seed,
        is_causal=is_causal,
        dropout=dropout,
    )
    return gradients


@_attend_backward.register_fake
def _(_gradient: Tensor, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    queries, keys, values, *_ = inputs
    return _new_context(queries), _new_context(keys), _new_context(values)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.is_causal, ctx.dropout = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    gradients = _attend_backward(gradient, *ctx.saved_tensors, ctx.is_causal, ctx.dropout)
    return *(one.transpose(1, 2) for one in gradients), None, None, None, None


_attend.register_autograd(_backward, setup_context=_setup)


if __name__ == "__main__":
    length, head_dim = 7, 16
    heads = torch.randn(1, 2, length, head_dim).bfloat16().requires_grad_()
    where = "on a GPU with Triton" if HAS_TRITON else "no Triton here: torch's kernels instead"
    print(f"{length} positions of width {head_dim}, {heads.device}, {where}:")
    print("supported:", is_supported(heads, heads, mask=None))
