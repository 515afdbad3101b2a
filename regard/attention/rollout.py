"""Attention rollout: one map for all layers of a stack."""

import torch
from torch import Tensor

from regard.core.shapes import check


def rollout(maps: Tensor, *, residual: float = 0.5) -> Tensor:
    """Multiply the attention maps of all layers.

    Abnar and Zuidema 2020, section 3: heads are averaged, the identity is added for the residual
    connection, and the maps of the layers are multiplied.

    Args:
        maps: (B, N, H, S, S), the lowest layer first, from `record(...).stack_self()`.
        residual: Weight of the residual connection.

    Returns:
        (B, S, S): a row holds the weights of all inputs in one output, which sum to one.
    """
    check("maps", maps, "B N H S S")
    identity = residual * torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device)  # (S, S)
    layers = (1 - residual) * maps.mean(2) + identity  # (B, N, S, S)
    layers = _normalize_rows(layers)
    joint = layers[:, 0]  # (B, S, S)
    for layer in layers.unbind(1)[1:]:
        joint = layer @ joint
    return joint


def last_layer(maps: Tensor) -> Tensor:
    """Return the weights of the last layer, averaged over heads: (B, N, H, S, S) → (B, S, S)."""
    check("maps", maps, "B N H S S")
    return maps[:, -1].mean(1)


def class_token_weights(joint: Tensor) -> Tensor:
    """Return the weights of the class token on all other positions.

    Args:
        joint: (B, S, S), from `rollout` or `last_layer`. The class token is the first position.

    Returns:
        (B, S - 1), normalised to sum to one without the class token's own weight.
    """
    return _normalize_rows(joint[:, 0, 1:])  # (B, S - 1)


def _normalize_rows(values: Tensor) -> Tensor:
    """Normalise rows to sum to one. A row of zeros (a fully masked position) stays zero."""
    return values / values.sum(-1, keepdim=True).clamp(min=torch.finfo(values.dtype).tiny)


if __name__ == "__main__":
    torch.manual_seed(0)
    print(
        "weights of the class token:",
        class_token_weights(rollout(_normalize_rows(torch.rand(1, 6, 4, 5, 5)))),
    )
