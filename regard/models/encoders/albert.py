"""ALBERT's encoder: one block for all layers, and embeddings narrower than the states."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.attention.positions import POSITIONS, PositionKind, Positions
from regard.core.config import at_least
from regard.core.specs import TextSpec
from regard.core.tables import pick
from regard.models.encoders.bert import add_segments
from regard.models.interfaces import Memory, TokenEncoder, masked_mean
from regard.models.layers import NORMS, FeedForwardKind
from regard.models.transformer import (
    TransformerBlock,
    TransformerBlocks,
    TransformerConfig,
    build_final_norm,
    place,
)


@dataclass(frozen=True, kw_only=True)
class AlbertEncoderConfig(TransformerConfig):
    """A block that is run as often as there are layers."""

    kind: Literal["albert"] = "albert"
    """What kind of encoder this is."""
    feed_forward: FeedForwardKind = "gelu"
    """The feed-forward layer."""
    positions: PositionKind = "learned"
    """How order is told."""
    embedding_dim: int = 64
    """Width of the embeddings, from which a matrix leads to `dim`."""
    num_segments: int = 2
    """Segments that have a vector each: the first text, the second; 0 = none are told apart."""
    separator: int = 3
    """Id of the token after which the next segment begins."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("embedding_dim", self.embedding_dim, 1)
        at_least("num_segments", self.num_segments, 0)
        at_least("separator", self.separator, 0)


class AlbertEncoder(TokenEncoder):
    """Reads texts with few weights (Lan et al. 2020, section 3.1)."""

    def __init__(self, config: AlbertEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.separator = config.separator
        self.num_layers = config.num_layers
        self.embedding = nn.Embedding(spec.vocab_size, config.embedding_dim)
        # What is added to embeddings is as wide as they are; the rest acts on heads.
        kind = pick(POSITIONS, config.positions, "positions")
        is_added = kind.embed is not Positions.embed
        self.positions = kind(
            dim=config.embedding_dim if is_added else config.dim,
            num_heads=config.num_heads,
            max_length=config.max_length,
            is_causal=False,
        )
        self.segment_embedding = (
            nn.Embedding(config.num_segments, config.embedding_dim) if config.num_segments else None
        )
        self.embedding_norm = pick(NORMS, config.norm, "norm")(
            config.embedding_dim, config.norm_epsilon
        )
        self.widen = nn.Linear(config.embedding_dim, config.dim)
        self.blocks = TransformerBlocks([TransformerBlock(config, self.positions)])
        self.norm = build_final_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole text, token ids (B, S), and return its `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        states: Tensor = self.widen(self.dropout(self.embedding_norm(self._embed(values))))
        (block,) = self.blocks
        for _ in range(self.num_layers):
            states = block.encode(states, mask)
        states = self.norm(states)
        return Memory(states=states, mask=mask, summary=masked_mean(states, mask), tokens=values)

    def _embed(self, values: Tensor) -> Tensor:
        """Sum what is known of each token (B, S) before it looks around: (B, S, C)."""
        states = place(self.embedding(values), self.positions)
        return add_segments(states, values, self.segment_embedding, separator=self.separator)
