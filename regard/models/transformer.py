"""Transformer blocks and stacks, shared by encoders and decoders."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from torch import Tensor, nn

from regard.attention.beam_cache import BeamCache
from regard.attention.cache import KeyValue, KeyValueCache
from regard.attention.multihead import CrossAttention, SelfAttention, check_heads
from regard.attention.positions import POSITIONS, PositionKind, Positions
from regard.core.config import (
    Config,
    DropoutRate,
    NonNegative,
    Positive,
    Within,
)
from regard.core.dropout import Dropout
from regard.core.module import Module, apply_jointly
from regard.core.tables import pick
from regard.models.layers import EPSILON, FEED_FORWARDS, NORMS, FeedForwardKind, NormKind, Residual


@dataclass(frozen=True, kw_only=True)
class BlockConfig(Config):
    """Hyperparameters of a stack of transformer blocks."""

    dim: Positive = 256
    """Width of the states."""
    num_layers: Positive = 3
    """Number of blocks."""
    num_heads: Positive = 4
    """Number of query heads."""
    num_key_heads: NonNegative = 0
    """Number of key and value heads, shared by groups of query heads; 0 = `num_heads`."""
    feed_forward_dim: Positive = 1024
    """Hidden width of the feed-forward layers."""
    feed_forward: FeedForwardKind = "relu"
    """Kind of feed-forward layer."""
    norm: NormKind = "layer"
    """Kind of norm."""
    norm_epsilon: Annotated[float, Within(0.0, 0.1)] = EPSILON
    """Epsilon of the norm; imported models have different values."""
    is_norm_first: bool = False
    """Whether the norm is before each layer (pre-norm) instead of after the residual sum."""
    dropout: DropoutRate = 0.1
    """Dropout probability of embeddings, attention weights, feed-forward and residual branches."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.dim, self.num_heads, self.num_key_heads or self.num_heads)


@dataclass(frozen=True, kw_only=True)
class VisionBlockConfig(BlockConfig):
    """Hyperparameters of blocks over images, with the defaults of vision transformers."""

    feed_forward: FeedForwardKind = "gelu"
    """Kind of feed-forward layer."""
    is_norm_first: bool = True
    """Whether the norm is before each layer (pre-norm) instead of after the residual sum."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(BlockConfig):
    """Hyperparameters of transformer encoders and decoders."""

    positions: PositionKind = "sinusoidal"
    """Position encoding."""
    max_length: Positive = 512
    """Maximum number of tokens, for learned positions."""


def build_positions(config: TransformerConfig, *, is_causal: bool) -> Positions:
    """Build the position encoding, which all blocks of a stack share."""
    return pick(POSITIONS, config.positions, "positions")(
        dim=config.dim,
        num_heads=config.num_heads,
        max_length=config.max_length,
        is_causal=is_causal,
    )


def build_norm(config: BlockConfig) -> nn.Module:
    """Build a norm."""
    return pick(NORMS, config.norm, "norm")(config.dim, config.norm_epsilon)


def build_final_norm(config: BlockConfig) -> nn.Module:
    """Build the norm after the last block; with post-norm, the identity."""
    return build_norm(config) if config.is_norm_first else nn.Identity()


def add_positions(embedded: Tensor, positions: Positions, *, first: int = 0) -> Tensor:
    """Add position embeddings to (B, L, D); the first position is `first`."""
    end = first + embedded.shape[1]
    positions.check_length(end)
    embeddings = positions.embed_range(first, end, embedded.device)
    return embedded if embeddings is None else embedded + embeddings.to(embedded.dtype)


class TransformerBlock(Module):
    """Self-attention, optional cross-attention, feed-forward.

    Vaswani et al. 2017, fig. 1.

    Args:
        config: The hyperparameters.
        positions: Position encoding of the self-attention.
        memory_dim: Width of the memory's states; 0 = no cross-attention.
        attention_type: Class of the self-attention.
    """

    def __init__(
        self,
        config: BlockConfig,
        positions: Positions,
        *,
        memory_dim: int = 0,
        attention_type: Callable[..., SelfAttention] = SelfAttention,
    ) -> None:
        super().__init__()
        self.self_attention = attention_type(
            dim=config.dim,
            num_heads=config.num_heads,
            num_key_heads=config.num_key_heads,
            dropout=config.dropout,
            positions=positions,
        )
        self.self_residual = _build_residual(config)
        if memory_dim:
            self.cross_attention = CrossAttention(
                dim=config.dim,
                num_heads=config.num_heads,
                num_key_heads=config.num_key_heads,
                memory_dim=memory_dim,
                dropout=config.dropout,
            )
            self.cross_residual = _build_residual(config)
        self.feed_forward = pick(FEED_FORWARDS, config.feed_forward, "feed_forward")(
            config.dim, config.feed_forward_dim, config.dropout
        )
        self.feed_residual = _build_residual(config)

    def forward(
        self,
        states: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
        memory: Tensor | KeyValue | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Map states (B, T, D) to states of the same shape.

        Args:
            states: (B, T, D); in search, T positions are those of all beams of a sentence.
            mask: (B, T, K) or broadcastable, True = may attend; None = all.
            is_causal: Whether a position attends to itself and earlier positions only.
            cache: Key-value cache for incremental decoding; the new positions are appended.
            memory: (B, S, D), or its projected keys and values.
            memory_mask: (B, S), True = a real position of the memory.
        """

        def attend_self(inputs: Tensor) -> Tensor:
            return self.self_attention(inputs, mask=mask, is_causal=is_causal, cache=cache)[0]

        def attend_cross(inputs: Tensor) -> Tensor:
            assert memory is not None and memory_mask is not None
            return self.cross_attention(inputs, memory, mask=memory_mask[:, None])[0]

        states = self.self_residual(states, attend_self)
        if memory is not None:
            states = self.cross_residual(states, attend_cross)
        return self.feed_residual(states, self.feed_forward)


class TransformerStack(Module, nn.ModuleList):
    """Transformer blocks applied in order.

    Args:
        blocks: The blocks.
        num_rounds: Number of times all blocks are applied, with the same weights.
    """

    def __init__(self, blocks: Iterable[nn.Module] = (), *, num_rounds: int = 1) -> None:
        super().__init__(blocks)
        self.num_rounds = num_rounds

    def forward(
        self,
        states: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        caches: Sequence[KeyValueCache] | None = None,
        memory: Tensor | list[KeyValue] | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Map states (B, T, D) to states of the same shape.

        Args:
            states: (B, T, D).
            mask: As in `TransformerBlock.forward`.
            is_causal: Whether a position attends to itself and earlier positions only.
            caches: One per block for incremental decoding; the states are then the new positions.
            memory: (B, S, D), or projected keys and values for each block.
            memory_mask: (B, S), True = a real position of the memory.
        """
        for _ in range(self.num_rounds):
            for index, block in enumerate(self):
                states = block(
                    states,
                    mask=mask,
                    is_causal=is_causal,
                    cache=None if caches is None else caches[index],
                    memory=memory[index] if isinstance(memory, list) else memory,
                    memory_mask=memory_mask,
                )
        return states

    def new_cache(self, *, beams: int = 1, max_length: int | None = None) -> BeamCache:
        """Return empty key-value caches of all blocks. Arguments as in `BeamCache.allocate`."""
        return BeamCache.allocate(len(self), beams=beams, max_length=max_length)

    def project_memory(self, memory: Tensor) -> list[KeyValue]:
        """Project a memory (B, S, D) to the cross-attention keys and values of each block."""
        blocks: Iterable[Any] = self
        attentions: list[CrossAttention] = [block.cross_attention for block in blocks]
        maps = [linear for one in attentions for linear in (one.key_map, one.value_map)]
        projected = iter(apply_jointly(maps, memory))
        return [
            (one.split_heads(next(projected)), one.split_heads(next(projected)))
            for one in attentions
        ]


def build_stack(
    config: BlockConfig,
    positions: Positions,
    *,
    memory_dim: int = 0,
    attention_type: Callable[..., SelfAttention] = SelfAttention,
) -> TransformerStack:
    """Build a stack of `config.num_layers` blocks."""
    return TransformerStack(
        TransformerBlock(config, positions, memory_dim=memory_dim, attention_type=attention_type)
        for _ in range(config.num_layers)
    )


class PositionedStack(Module):
    """Base class of encoders and decoders that run a stack of blocks over embeddings."""

    def build_layers(
        self,
        config: BlockConfig,
        positions: Positions,
        *,
        memory_dim: int = 0,
        attention_type: Callable[..., SelfAttention] = SelfAttention,
    ) -> None:
        """Build positions, blocks, final norm and dropout. Arguments as in `build_stack`."""
        self.positions = positions
        self.blocks = build_stack(
            config, positions, memory_dim=memory_dim, attention_type=attention_type
        )
        self.norm = build_final_norm(config)
        self.dropout = Dropout(config.dropout)

    def embed(self, embedded: Tensor, *, first: int = 0) -> Tensor:
        """Add position embeddings to (B, L, D) and apply dropout."""
        return self.dropout(add_positions(embedded, self.positions, first=first))


def build_fusion(
    dim: int, *, num_layers: int, num_heads: int, dropout: float
) -> tuple[TransformerStack, nn.Module]:
    """Build blocks without position encoding, and their final norm."""
    if not num_layers:
        return TransformerStack(), nn.Identity()
    config = VisionBlockConfig(
        dim=dim,
        num_layers=num_layers,
        num_heads=num_heads,
        feed_forward_dim=4 * dim,
        dropout=dropout,
    )
    positions = Positions(dim=dim, num_heads=num_heads)
    return build_stack(config, positions), build_final_norm(config)


def _build_residual(config: BlockConfig) -> Residual:
    return Residual(build_norm(config), is_norm_first=config.is_norm_first, dropout=config.dropout)
