"""The transformer encoder: every position looks at every other, block after block."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.models.blocks import (
    TransformerBlock,
    TransformerBlocks,
    TransformerConfig,
    build_final_norm,
    build_positions,
    place,
)
from regard.models.interfaces import Encoder, Memory, masked_mean


@dataclass(frozen=True, kw_only=True)
class TransformerEncoderConfig(TransformerConfig):
    """A stack of blocks that look in both directions."""

    kind: Literal["transformer"] = "transformer"
    """What kind of encoder this is."""


class TransformerEncoder(Encoder):
    """Reads the source with self-attention (Vaswani et al. 2017)."""

    def __init__(self, config: TransformerEncoderConfig, vocab_size: int) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.embedding = nn.Embedding(vocab_size, config.dim)
        self.positions = build_positions(config, is_causal=False)
        self.blocks = TransformerBlocks(
            TransformerBlock(config, self.positions) for _ in range(config.num_layers)
        )
        self.norm = build_final_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.scale = config.dim**0.5

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole source, token ids (B, S), and return its `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        states = self.dropout(place(self.embedding(values) * self.scale, self.positions))
        for block in self.blocks:
            states = block.encode(states, mask)
        states = self.norm(states)
        return Memory(states=states, mask=mask, summary=masked_mean(states, mask), tokens=values)
