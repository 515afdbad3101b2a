"""Attention of many layers as one map: how much each input counts in each output."""

import torch
from torch import Tensor

from regard.core.shapes import check


def rollout(maps: Tensor, *, residual: float = 0.5) -> Tensor:
    """Follow attention down through all layers.

    Abnar and Zuidema 2020, section 3: heads are averaged, each position keeps a share of itself
    for the residual connection, and the layers' maps are multiplied.

    Args:
        maps: (B, N, H, S, S), the lowest layer first; what `record(...).stack_self()` returns.
        residual: The share that goes past the attention.

    Returns:
        (B, S, S): row by row, how much of each input is in an output. A row sums to one.
    """
    check("maps", maps, "B N H S S")
    kept = residual * torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device)  # (S, S)
    layers = (1 - residual) * maps.mean(2) + kept  # (B, N, S, S)
    layers = _shares(layers)
    joint = layers[:, 0]  # (B, S, S)
    for layer in layers.unbind(1)[1:]:
        joint = layer @ joint
    return joint


def last_layer(maps: Tensor) -> Tensor:
    """Return where the last layer looks, its heads averaged: (B, S, S) of (B, N, H, S, S)."""
    check("maps", maps, "B N H S S")
    return maps[:, -1].mean(1)


def class_row(joint: Tensor) -> Tensor:
    """Return how much each other position counts for the first, the class token's.

    Args:
        joint: (B, S, S), of `rollout` or `last_layer`.

    Returns:
        (B, S - 1), which sum to one: what the token keeps of itself says nothing of the others.
    """
    return _shares(joint[:, 0, 1:])  # (B, S - 1)


def _shares(values: Tensor) -> Tensor:
    """Make rows sum to one; a row of zeros, of a position that attends to nothing, stays."""
    return values / values.sum(-1, keepdim=True).clamp(min=torch.finfo(values.dtype).tiny)


if __name__ == "__main__":
    torch.manual_seed(0)
    print(
        "what counts for the class token:", class_row(rollout(_shares(torch.rand(1, 6, 4, 5, 5))))
    )
