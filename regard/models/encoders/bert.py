"""BERT's encoder, and ALBERT's with one block for all layers and narrower embeddings."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.attention.positions import POSITIONS, PositionKind, Positions
from regard.core.config import NonNegative, Positive
from regard.core.module import Dropout, Embedding, Linear
from regard.core.specs import TextSpec
from regard.core.tables import pick
from regard.models.interfaces import Memory, TokenEncoder, masked_mean
from regard.models.layers import NORMS, FeedForwardKind
from regard.models.transformer import (
    TransformerBlock,
    TransformerConfig,
    TransformerStack,
    add_positions,
    build_final_norm,
    build_stack,
)


@dataclass(frozen=True, kw_only=True)
class SegmentConfig(TransformerConfig):
    """Settings of both."""

    feed_forward: FeedForwardKind = "gelu"
    """The feed-forward layer."""
    positions: PositionKind = "learned"
    """How order is told."""
    num_segments: NonNegative = 2
    """Segments that have a vector each: the first text, the second; 0 = none are told apart."""
    separator: NonNegative = 3
    """Id of the token after which the next segment begins."""


@dataclass(frozen=True, kw_only=True)
class BertEncoderConfig(SegmentConfig):
    """A stack of blocks over one text, or over two texts with a separator between them."""

    kind: Literal["bert"] = "bert"
    """What kind of encoder this is."""


@dataclass(frozen=True, kw_only=True)
class AlbertEncoderConfig(SegmentConfig):
    """A block that is run as often as there are layers."""

    kind: Literal["albert"] = "albert"
    """What kind of encoder this is."""
    embedding_dim: Positive = 64
    """Width of the embeddings, from which a matrix leads to `dim`."""


class SegmentEncoder(TokenEncoder):
    """Sums the embeddings of tokens, positions and segments, norms them and attends both ways.

    Unlike Vaswani's, it norms the sum of embeddings and does not scale them first.

    Args:
        config: The settings.
        spec: The sizes of the text.
        embedding_dim: Width of the embeddings.
    """

    def __init__(self, config: SegmentConfig, spec: TextSpec, *, embedding_dim: int) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.separator = config.separator
        self.embedding = Embedding(spec.vocab_size, embedding_dim)
        # What is added to embeddings is as wide as they are; the rest acts on heads.
        kind = pick(POSITIONS, config.positions, "positions")
        is_added = kind.embed is not Positions.embed
        self.positions = kind(
            dim=embedding_dim if is_added else config.dim,
            num_heads=config.num_heads,
            max_length=config.max_length,
            is_causal=False,
        )
        self.segment_embedding = (
            Embedding(config.num_segments, embedding_dim) if config.num_segments else None
        )
        self.embedding_norm = pick(NORMS, config.norm, "norm")(embedding_dim, config.norm_epsilon)
        self.widen, self.blocks = self.build_blocks(config)
        self.norm = build_final_norm(config)
        self.dropout = Dropout(config.dropout)

    @abstractmethod
    def build_blocks(self, config: SegmentConfig) -> tuple[nn.Module, TransformerStack]:
        """Build what brings embeddings to the width of the states, and the blocks."""

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole text, token ids (B, S), and return its `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        embedded = self.dropout(self.embedding_norm(self.embed(values)))
        states = self.norm(self.blocks(self.widen(embedded), mask=mask[:, None]))
        return Memory(states=states, mask=mask, summary=masked_mean(states, mask), tokens=values)

    def embed(self, values: Tensor) -> Tensor:
        """Sum the embeddings of tokens (B, S), their positions and their segments: (B, S, C)."""
        states = add_positions(self.embedding(values), self.positions)
        if self.segment_embedding is None:
            return states
        last = self.segment_embedding.num_embeddings - 1
        # The last segment has no end.
        added: Tensor = self.segment_embedding(segment(values, self.separator).clamp(max=last))
        return states + added


class BertEncoder(SegmentEncoder):
    """Reads texts as BERT does (Devlin et al. 2019, fig. 2)."""

    def __init__(self, config: BertEncoderConfig, spec: TextSpec) -> None:
        super().__init__(config, spec, embedding_dim=config.dim)

    def build_blocks(self, config: SegmentConfig) -> tuple[nn.Module, TransformerStack]:
        """Build a block for each layer."""
        return nn.Identity(), build_stack(config, self.positions)


class AlbertEncoder(SegmentEncoder):
    """Reads texts with few weights (Lan et al. 2020, section 3.1)."""

    def __init__(self, config: AlbertEncoderConfig, spec: TextSpec) -> None:
        super().__init__(config, spec, embedding_dim=config.embedding_dim)

    def build_blocks(self, config: SegmentConfig) -> tuple[nn.Module, TransformerStack]:
        """Build one block for all layers."""
        widen = Linear(self.embedding.embedding_dim, config.dim)
        block = TransformerBlock(config, self.positions)
        return widen, TransformerStack([block], num_rounds=config.num_layers)


def segment(values: Tensor, separator: int) -> Tensor:
    """Count for each token (B, S) the separators before it; a separator ends its own segment."""
    is_separator = (values == separator).long()
    return is_separator.cumsum(dim=1) - is_separator
