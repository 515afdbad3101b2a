"""BERT's encoder: tokens, places and segments are summed, normed, and read in both directions."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.attention.positions import PositionKind
from regard.core.config import at_least
from regard.core.specs import TextSpec
from regard.models.interfaces import Memory, TokenEncoder, masked_mean
from regard.models.layers import FeedForwardKind
from regard.models.transformer import (
    TransformerBlock,
    TransformerBlocks,
    TransformerConfig,
    build_final_norm,
    build_norm,
    build_positions,
    place,
)


@dataclass(frozen=True, kw_only=True)
class BertEncoderConfig(TransformerConfig):
    """A stack of blocks over one text, or over two texts with a separator between them."""

    kind: Literal["bert"] = "bert"
    """What kind of encoder this is."""
    feed_forward: FeedForwardKind = "gelu"
    """The feed-forward layer."""
    positions: PositionKind = "learned"
    """How order is told."""
    num_segments: int = 2
    """Segments that have a vector each: the first text, the second; 0 = none are told apart."""
    separator: int = 3
    """Id of the token after which the next segment begins."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("num_segments", self.num_segments, 0)
        at_least("separator", self.separator, 0)


class BertEncoder(TokenEncoder):
    """Reads texts as BERT does (Devlin et al. 2019, fig. 2).

    Unlike Vaswani's, it norms the sum of embeddings and does not scale them first.
    """

    def __init__(self, config: BertEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.separator = config.separator
        self.embedding = nn.Embedding(spec.vocab_size, config.dim)
        self.positions = build_positions(config, is_causal=False)
        self.segment_embedding = (
            nn.Embedding(config.num_segments, config.dim) if config.num_segments else None
        )
        self.embedding_norm = build_norm(config)
        self.blocks = TransformerBlocks(
            TransformerBlock(config, self.positions) for _ in range(config.num_layers)
        )
        self.norm = build_final_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole text, token ids (B, S), and return its `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        states = self.dropout(self.embedding_norm(self.embed(values)))
        for block in self.blocks:
            states = block.encode(states, mask)
        states = self.norm(states)
        return Memory(states=states, mask=mask, summary=masked_mean(states, mask), tokens=values)

    def embed(self, values: Tensor) -> Tensor:
        """Sum what is known of each token (B, S) before it looks around: (B, S, D)."""
        states = place(self.embedding(values), self.positions)
        return add_segments(states, values, self.segment_embedding, separator=self.separator)


def add_segments(
    states: Tensor, values: Tensor, embedding: nn.Embedding | None, *, separator: int
) -> Tensor:
    """Add to the states of tokens (B, S) in which segment they are; the last has no end."""
    if embedding is None:
        return states
    told: Tensor = embedding(segment(values, separator).clamp(max=embedding.num_embeddings - 1))
    return states + told


def segment(values: Tensor, separator: int) -> Tensor:
    """Count for each token (B, S) the separators before it; a separator ends its own segment."""
    is_separator = (values == separator).long()
    return is_separator.cumsum(dim=1) - is_separator
