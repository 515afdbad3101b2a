"""Bottleneck encoder: another encoder, whose output is reduced to latents."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from regard.core.config import Config
from regard.models.bottlenecks import (
    BottleneckConfig,
    LossTerms,
    PlainBottleneckConfig,
    build_bottleneck,
)
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.tables import WideEncoderConfig
from regard.models.interfaces import Encoder, Memory, all_real, masked_mean


@dataclass(frozen=True, kw_only=True)
class BottleneckEncoderConfig(Config):
    """Hyperparameters of an encoder with a bottleneck."""

    kind: Literal["bottleneck"] = "bottleneck"
    """Kind of encoder."""
    encoder: WideEncoderConfig = field(default_factory=RnnEncoderConfig)
    """Encoder of the source."""
    bottleneck: BottleneckConfig = field(default_factory=PlainBottleneckConfig)
    """Bottleneck."""
    of: Literal["summary", "states"] = "summary"
    """Input of the bottleneck: the summary, for one latent per source, or each state."""


class BottleneckEncoder(Encoder):
    """Encoder with a bottleneck. The memory contains the latents only.

    Args:
        config: The hyperparameters.
        encoder: The inner encoder.
    """

    def __init__(self, config: BottleneckEncoderConfig, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.bottleneck = build_bottleneck(config.bottleneck, encoder.memory_dim)
        self.memory_dim = config.bottleneck.dim
        self.has_one_latent = config.of == "summary"
        """Whether a source has one latent."""

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode the source and return its latents as a `Memory`."""
        inner = self.inner_memory(values, mask)
        latents, terms = self.bottleneck(inner.states)
        return memory_from_latents(latents, inner.mask, layout=inner.layout, terms=terms)

    def inner_memory(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode the source and return the input of the bottleneck as states."""
        memory = self.encoder(values, mask)
        if not self.has_one_latent:
            return memory
        states = memory.summary[:, None]  # (B, 1, D)
        return Memory(states, all_real(states), memory.summary)

    def memory_positions(self, values: Tensor, mask: Tensor) -> Tensor | None:
        """Map each source position to its position in the memory, (B, S)."""
        if not self.has_one_latent:
            return self.encoder.memory_positions(values, mask)
        return torch.zeros_like(mask, dtype=torch.long)


def memory_from_latents(
    latents: Tensor,
    mask: Tensor | None = None,
    *,
    layout: tuple[int, ...] | None = None,
    terms: LossTerms | None = None,
) -> Memory:
    """Return a `Memory` of latents.

    Args:
        latents: (B, S, D), or (B, D) for one latent per source.
        mask: (B, S), True = a real position; None = all.
        layout: Layout of the positions, if they are a grid.
        terms: Loss terms of the latents, (B, S) each; padding is excluded.
    """
    states = latents[:, None] if latents.dim() == 2 else latents  # (B, S, D)
    mask = all_real(states) if mask is None else mask
    losses = {name: term.where(mask, 0.0).sum(1) for name, term in (terms or {}).items()}
    return Memory(states, mask, masked_mean(states, mask), layout=layout, losses=losses)
