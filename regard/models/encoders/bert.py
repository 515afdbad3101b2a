"""Encoders of BERT and ALBERT."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.attention.positions import POSITIONS, PositionKind, Positions
from regard.core.config import NonNegative, Positive
from regard.core.dropout import Dropout
from regard.core.module import Embedding, Linear
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
    """Hyperparameters of both encoders."""

    feed_forward: FeedForwardKind = "gelu"
    """Kind of feed-forward layer."""
    positions: PositionKind = "learned"
    """Position encoding."""
    num_segments: NonNegative = 2
    """Number of segment embeddings, one per text; 0 = none."""
    separator: NonNegative = 3
    """Id of the token that ends a segment."""


@dataclass(frozen=True, kw_only=True)
class BertEncoderConfig(SegmentConfig):
    """Hyperparameters of BERT, for one text or for two texts with a separator between them."""

    kind: Literal["bert"] = "bert"
    """Kind of encoder."""


@dataclass(frozen=True, kw_only=True)
class AlbertEncoderConfig(SegmentConfig):
    """Hyperparameters of ALBERT, whose layers share one block."""

    kind: Literal["albert"] = "albert"
    """Kind of encoder."""
    embedding_dim: Positive = 64
    """Width of the embeddings, which are projected to `dim`."""


class SegmentEncoder(TokenEncoder):
    """Base class of BERT encoders: blocks over token, position and segment embeddings.

    Unlike in Vaswani et al. 2017, the sum of embeddings is normalised and not scaled.

    Args:
        config: The hyperparameters.
        spec: Input specification of the text.
        embedding_dim: Width of the embeddings.
    """

    def __init__(self, config: SegmentConfig, spec: TextSpec, *, embedding_dim: int) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.separator = config.separator
        self.embedding = Embedding(spec.vocab_size, embedding_dim)
        # Added position embeddings have the width of the embeddings; other encodings act on heads.
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
        """Build the projection of the embeddings to the width of the states, and the blocks."""

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode token ids (B, S) into a `Memory`."""
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
        # Tokens after the last separator belong to the last segment.
        added: Tensor = self.segment_embedding(segment(values, self.separator).clamp(max=last))
        return states + added


class BertEncoder(SegmentEncoder):
    """BERT encoder (Devlin et al. 2019, fig. 2)."""

    def __init__(self, config: BertEncoderConfig, spec: TextSpec) -> None:
        super().__init__(config, spec, embedding_dim=config.dim)

    def build_blocks(self, config: SegmentConfig) -> tuple[nn.Module, TransformerStack]:
        """Build one block per layer."""
        return nn.Identity(), build_stack(config, self.positions)


class AlbertEncoder(SegmentEncoder):
    """ALBERT encoder: shared blocks, factorised embeddings (Lan et al. 2020, section 3.1)."""

    def __init__(self, config: AlbertEncoderConfig, spec: TextSpec) -> None:
        super().__init__(config, spec, embedding_dim=config.embedding_dim)

    def build_blocks(self, config: SegmentConfig) -> tuple[nn.Module, TransformerStack]:
        """Build one block for all layers."""
        widen = Linear(self.embedding.embedding_dim, config.dim)
        block = TransformerBlock(config, self.positions)
        return widen, TransformerStack([block], num_rounds=config.num_layers)


def segment(values: Tensor, separator: int) -> Tensor:
    """Return the segment of each token (B, S): the number of separators before it."""
    is_separator = (values == separator).long()
    return is_separator.cumsum(dim=1) - is_separator
