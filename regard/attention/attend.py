"""Scaled dot-product attention, computed explicitly or by a fused kernel."""

import math

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import short, step
from regard.attention.masks import causal_mask
from regard.core.dropout import dropout as drop
from regard.core.module import Module


class Attention(Module):
    """Base class of attention modules. The output is a tuple of context and weights.

    A module that is faster without weights returns None instead of them, unless `needs_weights`.
    """

    needs_weights = False
    """Whether the weights are returned. `record` sets it while it records."""
    is_self = False
    """Whether queries and keys come from the same sequence."""


def masked_softmax(
    scores: Tensor, mask: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """Compute attention weights: the softmax of the scores over the unmasked keys.

    Bahdanau et al. 2015, eq. 6.

    Args:
        scores: (..., Q, K), unnormalised.
        mask: (..., Q, K) or broadcastable, bool, True = may attend.
        bias: (..., Q, K) or broadcastable, added to the scores.

    Returns:
        (..., Q, K) in float32 or float64. Weights and gradients of a fully masked row are zero.
    """
    if bias is not None:
        scores = scores + bias
    scores = at_least_float32(scores)
    if mask is None:
        return scores.softmax(-1)
    # Masked positions get the lowest finite value: -inf would turn a fully masked row into NaN. The
    # second fill sets the weights of such a row to zero.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1).masked_fill(~mask, 0.0)


def at_least_float32(tensor: Tensor) -> Tensor:
    """Convert half-precision tensors to float32; leave float32 and float64 unchanged."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    """Compute the weighted sum of the values.

    Bahdanau et al. 2015, eq. 5.

    Args:
        weights: (..., Q, K).
        values: (..., K, D).

    Returns:
        The context, (..., Q, D).
    """
    return weights.to(values.dtype) @ values


def scaled_dot(queries: Tensor, keys: Tensor) -> Tensor:
    """Score queries (..., Q, D) against keys (..., K, D): q · k / √D, (..., Q, K).

    Vaswani et al. 2017, eq. 1. The scaling makes the variance independent of D.
    """
    return queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    needs_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Compute scaled dot-product attention.

    Vaswani et al. 2017, eq. 1. Without `needs_weights`, a fused kernel is used where it is fast;
    it does not store the weights. With `needs_weights`, they are computed explicitly. All give the
    same result.

    Args:
        queries: (B, H, Q, E).
        keys: (B, H, K, E); with fewer heads than queries, groups of query heads share one key head.
        values: (B, H, K, E), as many heads as the keys.
        mask: (B, H, Q, K) or broadcastable, bool, True = may attend.
        bias: (B, H, Q, K) or broadcastable, added to the scaled scores.
        is_causal: Whether a query attends to keys up to its position only. Queries are the last
            positions.
        dropout: Dropout probability of the weights.
        needs_weights: Whether to return the weights.

    Returns:
        The context (B, H, Q, E), and the weights (B, H, Q, K) or None.
    """
    if bias is None and not needs_weights and short.is_supported(queries, keys, mask):
        context = short.short_attention(
            queries, keys, values, mask=mask, is_causal=is_causal, dropout=dropout
        )
        return context, None
    num_queries, num_keys = queries.shape[-2], keys.shape[-2]
    is_plain = bias is None and not needs_weights and not dropout
    if is_plain and not (is_causal and num_queries > 1):
        if step.is_supported(queries, keys, values, mask=mask):
            return step.step_attention(queries, keys, values, mask=mask), None
    is_square = num_queries == num_keys and mask is None and bias is None
    is_explicit = needs_weights or _is_fused_slower(queries, keys, dropout)
    if is_causal and num_queries > 1 and (is_explicit or not is_square):
        allowed = causal_mask(num_queries, num_keys, queries.device)
        mask = allowed if mask is None else mask & allowed
    if is_explicit:
        group_size = queries.shape[1] // keys.shape[1]
        if group_size > 1:
            keys, values = (part.repeat_interleave(group_size, dim=1) for part in (keys, values))
        weights = masked_softmax(scaled_dot(queries, keys), mask, bias)
        return weighted_sum(drop(weights, dropout), values), weights if needs_weights else None
    context = scaled_dot_product_attention(
        queries,
        keys,
        values,
        attn_mask=_merge(mask, bias, queries.dtype),
        dropout_p=dropout,
        is_causal=is_causal and is_square and num_queries > 1,
        enable_gqa=keys.shape[1] != queries.shape[1],
    )
    return context, None


MAX_EXPLICIT_LENGTH = 64
"""Longest sequence whose attention compiled code computes explicitly on a GPU."""


def _is_fused_slower(queries: Tensor, keys: Tensor, dropout: float) -> bool:
    """Return whether the explicit computation is faster than torch's fused kernel in training.

    On a CPU, torch has no fused kernel with dropout, and the backward pass of the kernel without
    dropout takes more than five times as long in bf16 as the explicit computation. On a GPU, fused
    kernels compute tiles of 64 or 128 positions, which are mostly padding if sequences are short;
    compiled code fuses the explicit computation except for its matrix products.
    """
    if not queries.requires_grad:
        return False
    if queries.device.type == "cpu":
        return dropout > 0 or queries.dtype == torch.bfloat16
    is_short = max(queries.shape[-2], keys.shape[-2]) <= MAX_EXPLICIT_LENGTH
    return is_short and torch.compiler.is_compiling()


def _merge(mask: Tensor | None, bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Merge mask and bias into the single tensor that the fused kernel accepts."""
    if bias is None:
        return mask
    bias = bias.to(dtype)
    return bias if mask is None else bias.masked_fill(~mask, -torch.inf)


if __name__ == "__main__":
    inputs = torch.tensor([[0.5, 0.1, 0.9], [0.2, 0.4, 0.1], [-0.3, 0.2, -1.0]])
    weights = masked_softmax(scaled_dot(torch.tensor([[0.6, 0.3, 0.8]]), inputs))
    print("weights:", weights, "context:", weighted_sum(weights, inputs), sep="\n")
