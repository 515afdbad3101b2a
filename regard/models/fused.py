"""Layers of transformer blocks for inference on a GPU, with fewer kernels than the originals."""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from regard.attention.short import HAS_TRITON
from regard.core.module import Module
from regard.models.layers import FeedForward, Residual


class FusedResidual(Module):
    """Post-norm residual connection, whose sum and layer norm are one kernel.

    Args:
        residual: The connection; its parameters are shared, not copied.
    """

    def __init__(self, residual: Residual) -> None:
        super().__init__()
        self.norm: Any = residual.norm

    def forward(self, states: Tensor, layer: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the output of a layer to states (B, L, D) and normalise the sum."""
        norm = self.norm
        # Triton, which the kernel needs, is imported at its first use.
        kernels: Any = importlib.import_module("regard.models.kernels.add_norm")
        normed: Tensor = kernels.add_norm(
            states.contiguous(), layer(states).contiguous(), norm.weight, norm.bias, norm.eps
        )
        return normed


class FusedFeedForward(Module):
    """Feed-forward layer with ReLU, which is a part of the first product.

    Args:
        layer: The layer; its parameters are shared, not copied.
    """

    def __init__(self, layer: FeedForward) -> None:
        super().__init__()
        self.hidden_map, self.output_map = layer.hidden_map, layer.output_map

    def forward(self, states: Tensor) -> Tensor:
        """Transform (B, L, D)."""
        hidden = self.hidden_map
        rows = torch._addmm_activation(hidden.bias, states.flatten(0, 1), hidden.weight.t())
        outputs: Tensor = self.output_map(rows.view(*states.shape[:2], -1))
        return outputs


def fuse(model: nn.Module) -> None:
    """Replace layers of a model in eval mode on a GPU by fused ones, in place."""
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, Residual) and HAS_TRITON and _is_post_norm(child):
                setattr(parent, name, FusedResidual(child))
            elif isinstance(child, FeedForward) and child.activation is relu:
                setattr(parent, name, FusedFeedForward(child))


def _is_post_norm(residual: Residual) -> bool:
    norm = residual.norm
    return not residual.is_norm_first and isinstance(norm, nn.LayerNorm) and norm.bias is not None
