"""Kernel of `regard.attention.step`: one program per sentence and head."""

import triton
import triton.language as tl
from torch import Tensor

COUNTS = (
    "num_queries", "num_keys", "mask_batch", "mask_query",
    "key_batch", "key_head", "value_batch", "value_head",
)  # fmt: skip
"""Arguments whose values do not lead to kernels of their own, since they change at each step."""

MANY_PROGRAMS = 1024
"""Number of programs from which small ones are faster: more of them run at the same time."""


@triton.jit(do_not_specialize=COUNTS)
def _kernel(
    queries, keys, values, context, mask,
    query_batch, query_head, query_position,
    key_batch, key_head, key_position,
    value_batch, value_head, value_position,
    mask_batch, mask_query,
    num_heads, num_queries, num_keys,
    GROUP: tl.constexpr, HAS_MASK: tl.constexpr, SCALE: tl.constexpr,
    Q: tl.constexpr, K: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    sentence, head = (tl.program_id(0) // num_heads).to(tl.int64), tl.program_id(0) % num_heads
    rows, width = tl.arange(0, Q), tl.arange(0, E)
    is_query = rows[:, None] < num_queries
    query_start = queries + sentence * query_batch + head * query_head
    query = tl.load(
        query_start + rows[:, None] * query_position + width[None, :], mask=is_query, other=0.0
    )
    key_start = keys + sentence * key_batch + (head // GROUP) * key_head
    value_start = values + sentence * value_batch + (head // GROUP) * value_head
    output = tl.zeros((Q, E), tl.float32)
    sums = tl.zeros((Q,), tl.float32)
    largest = tl.full((Q,), -1e30, tl.float32)
    for first in range(0, num_keys, K):
        columns = first + tl.arange(0, K)
        is_key = columns[:, None] < num_keys
        key = tl.load(
            key_start + columns[:, None] * key_position + width[None, :], mask=is_key, other=0.0
        )
        value = tl.load(
            value_start + columns[:, None] * value_position + width[None, :],
            mask=is_key, other=0.0,
        )  # fmt: skip
        is_allowed = is_query & (columns[None, :] < num_keys)
        if HAS_MASK:
            addresses = mask + sentence * mask_batch + rows[:, None] * mask_query + columns[None, :]
            is_allowed = is_allowed & (tl.load(addresses, mask=is_allowed, other=0) != 0)
        scores = tl.dot(query, tl.trans(key), input_precision="ieee") * SCALE
        scores = tl.where(is_allowed, scores, -1e30)
        maxima = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.where(is_allowed, tl.exp(scores - maxima[:, None]), 0.0)
        shrink = tl.exp(largest - maxima)
        sums = sums * shrink + tl.sum(weights, 1)
        output = output * shrink[:, None]
        output += tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        largest = maxima
    output = output / tl.where(sums > 0, sums, 1.0)[:, None]
    start = context + (sentence * num_queries * num_heads + head) * E
    addresses = start + rows[:, None] * num_heads * E + width[None, :]
    tl.store(addresses, output.to(context.dtype.element_ty), mask=is_query)


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, context: Tensor, *, mask: Tensor | None
) -> None:
    """Write the context.

    Args:
        queries: (B, H, Q, E).
        keys: (B, H, K, E), or fewer heads.
        values: (B, H, K, E), or fewer heads.
        context: (B, Q, H, E), contiguous.
        mask: (B, Q, K) or broadcastable, True = may attend; None = all.
    """
    batch, num_heads, num_queries, head_dim = queries.shape
    num_keys = keys.shape[2]
    is_many = batch * num_heads >= MANY_PROGRAMS
    if mask is not None:
        mask = mask.expand(batch, num_queries, num_keys)
    _kernel[(batch * num_heads,)](
        queries, keys, values, context, mask,
        *queries.stride()[:3], *keys.stride()[:3], *values.stride()[:3],
        *((0, 0) if mask is None else mask.stride()[:2]),
        num_heads, num_queries, num_keys,
        GROUP=num_heads // keys.shape[1], HAS_MASK=mask is not None, SCALE=head_dim**-0.5,
        Q=max(16, triton.next_power_of_2(num_queries)), K=16 if is_many else 64, E=head_dim,
        num_warps=1 if is_many else 8,
    )  # fmt: skip
