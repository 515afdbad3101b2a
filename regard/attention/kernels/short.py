"""Kernels of `regard.attention.short`: one program per sentence and head."""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

LENGTHS = ("num_queries", "num_keys")
"""Arguments whose values do not lead to kernels of their own, since batches have many lengths."""


@triton.jit
def _mix(x):
    """Mix the bits of 32-bit integers (the finaliser of MurmurHash3)."""
    x ^= x >> 16
    x *= 0x85EBCA6B
    x ^= x >> 13
    x *= 0xC2B2AE35
    x ^= x >> 16
    return x


@triton.jit
def _load(start, strides, rows, columns, num_rows):
    """Load the positions (L, E) of one head; zeros after the last position."""
    addresses = start + rows[:, None] * strides + columns[None, :]
    return tl.load(addresses, mask=rows[:, None] < num_rows, other=0.0)


@triton.jit
def _weights(
    queries, keys, mask, seed, sentence, num_queries, num_keys,
    IS_CAUSAL: tl.constexpr, HAS_MASK: tl.constexpr, THRESHOLD: tl.constexpr,
    SCALE: tl.constexpr, Q: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Return the attention weights (Q, K) and which of them are kept by dropout."""
    rows, columns = tl.arange(0, Q)[:, None], tl.arange(0, K)[None, :]
    is_allowed = columns < num_keys
    if HAS_MASK:
        real = tl.load(mask + sentence * num_keys + columns, mask=is_allowed, other=0)
        is_allowed = is_allowed & (real != 0)
    if IS_CAUSAL:
        is_allowed = is_allowed & (columns <= rows + num_keys - num_queries)
    scores = tl.where(is_allowed, tl.dot(queries, tl.trans(keys)) * SCALE, -1e30)
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    weights = tl.where(is_allowed, weights, 0.0)
    sums = tl.sum(weights, 1)[:, None]
    weights = weights / tl.where(sums > 0, sums, 1.0)
    index = (tl.program_id(0) * Q + rows) * K + columns
    bits = _mix(_mix(index.to(tl.uint32) ^ seed) + seed * 0x9E3779B9)
    return weights, bits >= THRESHOLD


@triton.jit(do_not_specialize=LENGTHS)
def _forward_kernel(
    queries, keys, values, context, mask, seed,
    query_batch, query_head, query_position,
    key_batch, key_head, key_position,
    value_batch, value_head, value_position,
    num_heads, num_queries, num_keys,
    IS_CAUSAL: tl.constexpr, HAS_MASK: tl.constexpr, THRESHOLD: tl.constexpr,
    KEEP: tl.constexpr, SCALE: tl.constexpr,
    Q: tl.constexpr, K: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    sentence, head = tl.program_id(0) // num_heads, tl.program_id(0) % num_heads
    rows, columns, width = tl.arange(0, Q), tl.arange(0, K), tl.arange(0, E)
    query = _load(
        queries + sentence * query_batch + head * query_head, query_position, rows, width,
        num_queries,
    )  # fmt: skip
    key = _load(
        keys + sentence * key_batch + head * key_head, key_position, columns, width, num_keys
    )
    value = _load(
        values + sentence * value_batch + head * value_head, value_position, columns, width,
        num_keys,
    )  # fmt: skip
    weights, is_kept = _weights(
        query, key, mask, tl.load(seed).to(tl.uint32), sentence, num_queries, num_keys,
        IS_CAUSAL, HAS_MASK, THRESHOLD, SCALE, Q, K,
    )  # fmt: skip
    dropped = tl.where(is_kept, weights / KEEP, 0.0)
    output = tl.dot(dropped.to(value.dtype), value)
    start = context + (sentence * num_queries * num_heads + head) * E
    addresses = start + rows[:, None] * num_heads * E + width[None, :]
    tl.store(addresses, output.to(context.dtype.element_ty), mask=rows[:, None] < num_queries)


@triton.jit(do_not_specialize=LENGTHS)
def _backward_kernel(
    queries, keys, values, gradient, query_gradient, key_gradient, value_gradient,
    mask, seed,
    query_batch, query_head, query_position,
    key_batch, key_head, key_position,
    value_batch, value_head, value_position,
    num_heads, num_queries, num_keys,
    IS_CAUSAL: tl.constexpr, HAS_MASK: tl.constexpr, THRESHOLD: tl.constexpr,
    KEEP: tl.constexpr, SCALE: tl.constexpr,
    Q: tl.constexpr, K: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    sentence, head = tl.program_id(0) // num_heads, tl.program_id(0) % num_heads
    rows, columns, width = tl.arange(0, Q), tl.arange(0, K), tl.arange(0, E)
    query = _load(
        queries + sentence * query_batch + head * query_head, query_position, rows, width,
        num_queries,
    )  # fmt: skip
    key = _load(
        keys + sentence * key_batch + head * key_head, key_position, columns, width, num_keys
    )
    value = _load(
        values + sentence * value_batch + head * value_head, value_position, columns, width,
        num_keys,
    )  # fmt: skip
    query_start = (sentence * num_queries * num_heads + head) * E
    key_start = (sentence * num_keys * num_heads + head) * E
    output = _load(gradient + query_start, num_heads * E, rows, width, num_queries)
    weights, is_kept = _weights(
        query, key, mask, tl.load(seed).to(tl.uint32), sentence, num_queries, num_keys,
        IS_CAUSAL, HAS_MASK, THRESHOLD, SCALE, Q, K,
    )  # fmt: skip
    dropped = tl.where(is_kept, weights / KEEP, 0.0)
    for_values = tl.dot(tl.trans(dropped.to(value.dtype)), output)
    for_dropped = tl.dot(output, tl.trans(value))
    for_weights = tl.where(is_kept, for_dropped / KEEP, 0.0)
    mean = tl.sum(weights * for_weights, 1)[:, None]
    for_scores = (weights * (for_weights - mean) * SCALE).to(value.dtype)
    for_queries = tl.dot(for_scores, key)
    for_keys = tl.dot(tl.trans(for_scores), query)
    by_query = query_start + rows[:, None] * num_heads * E + width[None, :]
    by_key = key_start + columns[:, None] * num_heads * E + width[None, :]
    is_query, is_key = rows[:, None] < num_queries, columns[:, None] < num_keys
    tl.store(query_gradient + by_query, for_queries.to(value.dtype), mask=is_query)
    tl.store(key_gradient + by_key, for_keys.to(value.dtype), mask=is_key)
    tl.store(value_gradient + by_key, for_values.to(value.dtype), mask=is_key)


def forward(
    inputs: tuple[Tensor, Tensor, Tensor],
    context: Tensor,
    *,
    mask: Tensor | None,
    seed: Tensor,
    is_causal: bool,
    dropout: float,
) -> None:
    """Write the context (B, Q, H, E) of queries, keys and values, each (B, H, L, E).

    Args:
        inputs: Queries, keys and values; the last dimension is contiguous.
        context: Output.
        mask: (B, K), True = may attend; None = all.
        seed: (), the seed of the dropout mask.
        is_causal: Whether a query attends to keys up to its position only.
        dropout: Dropout probability of the weights.
    """
    launch = _Launch(inputs, mask, seed, is_causal=is_causal, dropout=dropout)
    launch.run(_forward_kernel, context)


def backward(
    inputs: tuple[Tensor, Tensor, Tensor],
    gradients: tuple[Tensor, Tensor, Tensor, Tensor],
    *,
    mask: Tensor | None,
    seed: Tensor,
    is_causal: bool,
    dropout: float,
) -> None:
    """Write the gradients of queries, keys and values, each (B, L, H, E).

    Args:
        inputs: Queries, keys and values of the forward pass.
        gradients: The gradient of the context (B, Q, H, E), contiguous, and the outputs: those of
            queries, keys and values.
        mask: That of the forward pass.
        seed: That of the forward pass.
        is_causal: That of the forward pass.
        dropout: That of the forward pass.
    """
    launch = _Launch(inputs, mask, seed, is_causal=is_causal, dropout=dropout)
    launch.run(_backward_kernel, *gradients)


class _Launch:
    """The arguments that the forward and the backward kernel share."""

    def __init__(
        self,
        inputs: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        seed: Tensor,
        *,
        is_causal: bool,
        dropout: float,
    ) -> None:
        queries, keys, _ = inputs
        batch, num_heads, num_queries, head_dim = queries.shape
        num_keys = keys.shape[2]
        lengths = [max(16, triton.next_power_of_2(length)) for length in (num_queries, num_keys)]
        self._inputs = inputs
        self._masks = (seed if mask is None else mask.contiguous(), seed)
        self._strides = [stride for one in inputs for stride in one.stride()[:3]]
        self._sizes = (num_heads, num_queries, num_keys)
        self._num_programs = batch * num_heads
        self._constants = {
            "IS_CAUSAL": is_causal,
            "HAS_MASK": mask is not None,
            "THRESHOLD": round(dropout * 2**32),
            "KEEP": 1 - dropout,
            "SCALE": head_dim**-0.5,
            "Q": lengths[0],
            "K": lengths[1],
            "E": head_dim,
            "num_warps": 1 if max(lengths) <= 32 else 4,
        }

    def run(self, kernel: Any, *tensors: Tensor) -> None:
        """Run a kernel with its other tensors."""
        kernel[self._num_programs,](
            *self._inputs, *tensors, *self._masks, *self._strides, *self._sizes, **self._constants
        )
