"""Transformer encoder."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from torch import Tensor
from torch.nn.functional import pad

from regard.attention.multihead import SelfAttention
from regard.attention.windowed import WindowedAttention
from regard.core.config import NonNegative, Positive
from regard.core.module import Embedding
from regard.core.specs import TextSpec
from regard.models.interfaces import Memory, TokenEncoder, masked_mean
from regard.models.transformer import PositionedStack, TransformerConfig, build_positions


@dataclass(frozen=True, kw_only=True)
class TransformerEncoderConfig(TransformerConfig):
    """Hyperparameters of the encoder."""

    kind: Literal["transformer"] = "transformer"
    """Kind of encoder."""
    window: NonNegative = 0
    """Number of positions to each side that a position attends to; 0 = all."""
    pooling: Positive = 1
    """Number of neighbouring positions that are averaged into one state of the memory."""


class TransformerEncoder(PositionedStack, TokenEncoder):
    """Transformer encoder (Vaswani et al. 2017)."""

    def __init__(self, config: TransformerEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.embedding = Embedding(spec.vocab_size, config.dim)
        positions = build_positions(config, is_causal=False)
        attention_type = (
            partial(WindowedAttention, window=config.window) if config.window else SelfAttention
        )
        self.build_layers(config, positions, attention_type=attention_type)
        self.scale = config.dim**0.5
        self.num_joined = config.pooling

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode token ids (B, S) into a `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        states = self.embed(self.embedding(values) * self.scale)
        states = self.norm(self.blocks(states, mask=mask[:, None]))
        summary = masked_mean(states, mask)
        if self.num_joined == 1:
            return Memory(states, mask, summary, tokens=values)
        return Memory(*pool_neighbours(states, mask, self.num_joined), summary)


def pool_neighbours(states: Tensor, mask: Tensor, num: int) -> tuple[Tensor, Tensor]:
    """Average groups of `num` neighbouring real positions of states (B, S, D) and mask (B, S)."""
    batch, length, dim = states.shape
    extra = -length % num
    group_mask = pad(mask, (0, extra)).view(-1, num)
    pooled = masked_mean(pad(states, (0, 0, 0, extra)).view(-1, num, dim), group_mask)
    return pooled.view(batch, -1, dim), group_mask.any(-1).view(batch, -1)
