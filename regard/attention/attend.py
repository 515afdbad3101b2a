"""Attention itself: scores → weights → context, explicitly or in one fused kernel."""

import math

import torch
from torch import Tensor
from torch.nn.functional import dropout as drop
from torch.nn.functional import scaled_dot_product_attention

from regard.attention.masks import causal
from regard.core.module import Module


class Attention(Module):
    """Base class of attention modules: the output is a context, then weights or None.

    `needs_weights` is switched on by `record` while it records. A module that is faster without
    weights returns None in their place while it is off.
    """

    needs_weights = False
    is_self = False
    """Whether queries and keys come from one sequence, as in a transformer's encoder."""


def weigh(scores: Tensor, mask: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """Turn scores into weights that sum to one over the keys allowed.

    Bahdanau et al. 2015, eq. 6.

    Args:
        scores: (..., Q, K), any real numbers.
        mask: (..., Q, K) or broadcastable, bool, True = may attend.
        bias: (..., Q, K) or broadcastable, added to the scores.

    Returns:
        (..., Q, K) in float32 at least. A row with no key allowed is all zeros, forward and
        backward.
    """
    if bias is not None:
        scores = scores + bias
    scores = at_least_float32(scores)
    if mask is None:
        return scores.softmax(-1)
    # The lowest finite number instead of minus infinity: a row with nothing to attend to then
    # never makes a NaN, and the second fill turns it into zeros.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1).masked_fill(~mask, 0.0)


def at_least_float32(tensor: Tensor) -> Tensor:
    """Convert numbers of fewer than 32 bits to float32."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def mix(weights: Tensor, values: Tensor) -> Tensor:
    """Take the weighted sum of the values.

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

    Vaswani et al. 2017, eq. 1: the variance stays one however wide they are.
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

    Vaswani et al. 2017, eq. 1. Without `needs_weights` torch's fused kernel does it all and never
    stores the weights, unless that is slow; with it, the explicit computation returns them. Both
    give one result.

    Args:
        queries: (B, H, Q, E).
        keys: (B, H, K, E); fewer heads than the queries' are shared by groups of them.
        values: (B, H, K, E), as many heads as the keys.
        mask: (B, H, Q, K) or broadcastable, bool, True = may attend.
        bias: (B, H, Q, K) or broadcastable, added to the scaled scores.
        is_causal: Each query sees the keys up to its own position, the queries being the last.
        dropout: Share of the weights that are dropped.
        needs_weights: Whether weights are returned.

    Returns:
        The context (B, H, Q, E), and the weights (B, H, Q, K) or None.
    """
    num_queries, num_keys = queries.shape[-2], keys.shape[-2]
    is_square = num_queries == num_keys and mask is None and bias is None
    is_explicit = needs_weights or _is_fused_slower(queries, dropout)
    if is_causal and num_queries > 1 and (is_explicit or not is_square):
        order = causal(num_queries, num_keys, queries.device)
        mask = order if mask is None else mask & order
    if is_explicit:
        group = queries.shape[1] // keys.shape[1]
        if group > 1:
            keys, values = (part.repeat_interleave(group, dim=1) for part in (keys, values))
        weights = weigh(scaled_dot(queries, keys), mask, bias)
        return mix(drop(weights, dropout), values), weights if needs_weights else None
    context = scaled_dot_product_attention(
        queries,
        keys,
        values,
        attn_mask=_join(mask, bias, queries.dtype),
        dropout_p=dropout,
        is_causal=is_causal and is_square and num_queries > 1,
        enable_gqa=keys.shape[1] != queries.shape[1],
    )
    return context, None


def _is_fused_slower(queries: Tensor, dropout: float) -> bool:
    """Return whether the explicit computation is faster, as in some training on a CPU.

    There torch has no fused kernel with dropout, and the backward pass of the one without takes
    more than five times as long in bf16 as the explicit computation.
    """
    is_trained = queries.device.type == "cpu" and queries.requires_grad
    return is_trained and (dropout > 0 or queries.dtype == torch.bfloat16)


def _join(mask: Tensor | None, bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Join mask and bias into the one tensor that the fused kernel takes."""
    if bias is None:
        return mask
    bias = bias.to(dtype)
    return bias if mask is None else bias.masked_fill(~mask, -torch.inf)


if __name__ == "__main__":
    inputs = torch.tensor([[0.5, 0.1, 0.9], [0.2, 0.4, 0.1], [-0.3, 0.2, -1.0]])
    shown = weigh(scaled_dot(torch.tensor([[0.6, 0.3, 0.8]]), inputs))
    print("weights:", shown, "context:", mix(shown, inputs), sep="\n")
