"""The bottleneck encoder: whatever another encoder ends in becomes a narrow code."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from regard.core.config import Config
from regard.models.bottlenecks import (
    BottleneckConfig,
    PlainBottleneckConfig,
    Terms,
    build_bottleneck,
)
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.tables import WideEncoderConfig
from regard.models.interfaces import Encoder, Memory, all_real, masked_mean


@dataclass(frozen=True, kw_only=True)
class BottleneckEncoderConfig(Config):
    """An encoder, and how narrow it ends."""

    kind: Literal["bottleneck"] = "bottleneck"
    """What kind of encoder this is."""
    encoder: WideEncoderConfig = field(default_factory=RnnEncoderConfig)
    """What reads the source."""
    bottleneck: BottleneckConfig = field(default_factory=PlainBottleneckConfig)
    """What its states become."""
    of: Literal["summary", "states"] = "summary"
    """What is made narrow: the summary, to one code a source, or each state by itself."""


class BottleneckEncoder(Encoder):
    """Reads with another encoder; nothing of what that one found gets past the code.

    Args:
        config: The settings.
        encoder: What reads.
    """

    def __init__(self, config: BottleneckEncoderConfig, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.bottleneck = build_bottleneck(config.bottleneck, encoder.memory_dim)
        self.memory_dim = config.bottleneck.dim
        self.is_whole = config.of == "summary"
        """Whether a source has one code."""

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole source and return its code or codes as a `Memory`."""
        wide = self.widen(values, mask)
        code, terms = self.bottleneck(wide.states)
        return remember(code, wide.mask, layout=wide.layout, terms=terms)

    def widen(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole source and return what the bottleneck makes narrow as states."""
        memory = self.encoder(values, mask)
        if not self.is_whole:
            return memory
        states = memory.summary[:, None]  # (B, 1, D)
        return Memory(states, all_real(states), memory.summary)

    def groups(self, values: Tensor, mask: Tensor) -> Tensor | None:
        """Return the position of the memory that each source position went into, (B, S)."""
        if not self.is_whole:
            return self.encoder.groups(values, mask)
        return torch.zeros_like(mask, dtype=torch.long)


def remember(
    code: Tensor,
    mask: Tensor | None = None,
    *,
    layout: tuple[int, ...] | None = None,
    terms: Terms | None = None,
) -> Memory:
    """Return the `Memory` that holds codes and nothing else.

    Args:
        code: (B, S, D), or (B, D) where a source has but one.
        mask: (B, S), True = a real position; all are if not given.
        layout: The grid that the positions are, if they are one.
        terms: What each code costs, (B, S) each; padding costs nothing.
    """
    states = code[:, None] if code.dim() == 2 else code  # (B, S, D)
    mask = all_real(states) if mask is None else mask
    losses = {name: term.where(mask, 0.0).sum(1) for name, term in (terms or {}).items()}
    return Memory(states, mask, masked_mean(states, mask), layout=layout, losses=losses)
