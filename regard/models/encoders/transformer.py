"""The transformer encoder: positions look at each other, block after block."""

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
    """A stack of blocks that look in both directions."""

    kind: Literal["transformer"] = "transformer"
    """What kind of encoder this is."""
    window: NonNegative = 0
    """Positions to each side that a position sees in each block; 0 = all there are."""
    pooling: Positive = 1
    """Neighbouring positions that share one state of the memory, their mean."""


class TransformerEncoder(PositionedStack, TokenEncoder):
    """Reads the source with self-attention (Vaswani et al. 2017)."""

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
        """Read the whole source, token ids (B, S), and return its `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        states = self.embed(self.embedding(values) * self.scale)
        states = self.norm(self.blocks(states, mask=mask[:, None]))
        summary = masked_mean(states, mask)
        if self.num_joined == 1:
            return Memory(states, mask, summary, tokens=values)
        return Memory(*pool_neighbours(states, mask, self.num_joined), summary)


def pool_neighbours(states: Tensor, mask: Tensor, num: int) -> tuple[Tensor, Tensor]:
    """Average the real ones of each `num` neighbours: states (B, S, D) and mask (B, S), shorter."""
    batch, length, dim = states.shape
    rest = -length % num
    kept = pad(mask, (0, rest)).view(-1, num)
    pooled = masked_mean(pad(states, (0, 0, 0, rest)).view(-1, num, dim), kept)
    return pooled.view(batch, -1, dim), kept.any(-1).view(batch, -1)
