"""Fused attention of a step of search on a GPU: a few queries and many keys, with any mask.

In a step, a sentence has one query per beam. The kernels of torch split queries into tiles of 64 or
128, and convert a mask to scores, so most of their work is for nothing. Here one program computes
one head of all beams of a sentence, and reads the keys once.
"""

import importlib
from typing import Any

import torch
from torch import Tensor

from regard.attention.short import HAS_TRITON, HEAD_DIMS

MAX_QUERIES = 32
"""Maximum number of queries."""


def is_supported(queries: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None) -> bool:
    """Return whether `step_attention` can compute with these tensors.

    Args:
        queries: (B, H, Q, E).
        keys: (B, H, K, E).
        values: (B, H, K, E).
        mask: (B, H, Q, K) or broadcastable; only masks that all heads share are supported.
    """
    return (
        queries.device.type == "cuda"
        and HAS_TRITON
        and queries.dtype in (torch.bfloat16, torch.float16, torch.float32)
        and queries.shape[2] <= MAX_QUERIES
        and queries.shape[3] in HEAD_DIMS
        and not (torch.is_grad_enabled() and queries.requires_grad)
        and not torch.compiler.is_compiling()
        and queries.stride(3) == keys.stride(3) == values.stride(3) == 1
        and (mask is None or (mask.dim() == 4 and mask.shape[1] == 1))
    )


def step_attention(queries: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None) -> Tensor:
    """Compute scaled dot-product attention (B, H, Q, E) of a few queries. No gradients.

    Args:
        queries: (B, H, Q, E).
        keys: (B, H, K, E); with fewer heads than queries, groups of query heads share one key head.
        values: (B, H, K, E), as many heads as the keys.
        mask: (B, 1, Q, K) or broadcastable, True = may attend; None = all.
    """
    batch, num_heads, num_queries, head_dim = queries.shape
    context = queries.new_empty(batch, num_queries, num_heads, head_dim)
    if mask is not None:
        mask = mask[:, 0]
        mask = mask if mask.stride(2) == 1 else mask.contiguous()
    _kernels().attend(queries, keys, values, context, mask=mask)
    return context.transpose(1, 2)


def _kernels() -> Any:
    """Return the kernels; Triton, which they need, is imported at their first use."""
    return importlib.import_module("regard.attention.kernels.step")


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    query, key = (torch.randn(2, 8, length, 64, device=device) for length in (5, 40))
    supported = is_supported(query, key, key, mask=None)
    print(f"5 queries and 40 keys on the {device.upper()}: fused = {supported}")
