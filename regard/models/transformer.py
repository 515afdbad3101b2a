"""The transformer block, shared by encoders and decoders."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from regard.attention.masks import recent
from regard.attention.multihead import Heads, MultiHeadAttention, SelfAttention
from regard.attention.positions import POSITIONS, PositionKind, Positions
from regard.core.config import at_least, within
from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.models.interfaces import by_sentence
from regard.models.layers import EPSILON, FEED_FORWARDS, NORMS, FeedForwardKind, NormKind, Residual


@dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """What every stack of transformer blocks can be told."""

    dim: int = 256
    """Width of the states."""
    num_layers: int = 3
    """Number of blocks."""
    num_heads: int = 4
    """Query heads of each attention."""
    num_key_heads: int = 0
    """Key heads; fewer are shared by groups of query heads, 0 = as many."""
    feed_forward_dim: int = 1024
    """Width inside the feed-forward layers."""
    feed_forward: FeedForwardKind = "relu"
    """The feed-forward layer."""
    norm: NormKind = "layer"
    """The norm."""
    norm_epsilon: float = EPSILON
    """What the norm adds to the variance; imported models bring their own."""
    is_norm_first: bool = False
    """Norm before each layer instead of after the residual sum."""
    dropout: float = 0.1
    """Dropout on embeddings, weights, feed-forward layers and before each residual sum."""

    def __post_init__(self) -> None:
        for name in ("dim", "num_layers", "num_heads", "feed_forward_dim"):
            at_least(name, getattr(self, name), 1)
        at_least("num_key_heads", self.num_key_heads, 0)
        within("dropout", self.dropout, low=0.0, high=0.99)
        within("norm_epsilon", self.norm_epsilon, low=0.0, high=0.1)
        if self.dim % self.num_heads:
            raise ConfigError(
                f"`num_heads` must divide `dim` ({self.dim}), but is {self.num_heads}."
            )
        if self.num_key_heads and self.num_heads % self.num_key_heads:
            raise ConfigError(
                f"`num_key_heads` must divide `num_heads` ({self.num_heads}), "
                f"but is {self.num_key_heads}."
            )


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(BlockConfig):
    """What both sides of a transformer can be told."""

    positions: PositionKind = "sinusoidal"
    """How order is told."""
    max_length: int = 512
    """Most tokens; only learned positions have to know."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("max_length", self.max_length, 1)


def build_positions(config: TransformerConfig, *, is_causal: bool) -> Positions:
    """Build how order is told; one for all blocks of a side."""
    return pick(POSITIONS, config.positions, "positions")(
        dim=config.dim,
        num_heads=config.num_heads,
        max_length=config.max_length,
        is_causal=is_causal,
    )


def build_norm(config: BlockConfig) -> nn.Module:
    """Build a norm of states."""
    return pick(NORMS, config.norm, "norm")(config.dim, config.norm_epsilon)


def build_final_norm(config: BlockConfig) -> nn.Module:
    """Build the norm after the last block, which pre-norm needs and post-norm already has."""
    return build_norm(config) if config.is_norm_first else nn.Identity()


def place(embedded: Tensor, positions: Positions, *, first: int = 0) -> Tensor:
    """Add what tells the places of embeddings (B, L, D), the first of which is `first`."""
    last = first + embedded.shape[1]
    positions.check_length(last)
    places = torch.arange(first, last, device=embedded.device)
    added = positions.embed(places)
    return embedded if added is None else embedded + added.to(embedded.dtype)


class TransformerBlock(nn.Module):
    """Look at oneself, look at the source if there is one, think (Vaswani et al. 2017, fig. 1).

    Args:
        config: Sizes and choices.
        positions: How order is told within the text.
        memory_dim: Width of the source's states; 0 = there is no source to look at.
    """

    attention_type: ClassVar[type[SelfAttention]] = SelfAttention
    """How the text looks at itself."""

    def __init__(self, config: BlockConfig, positions: Positions, *, memory_dim: int = 0) -> None:
        super().__init__()
        self.self_attention = self.attention_type(
            dim=config.dim,
            num_heads=config.num_heads,
            num_key_heads=config.num_key_heads,
            dropout=config.dropout,
            positions=positions,
        )
        self.self_residual = self._residual(config)
        if memory_dim:
            self.cross_attention = MultiHeadAttention(
                dim=config.dim,
                num_heads=config.num_heads,
                num_key_heads=config.num_key_heads,
                memory_dim=memory_dim,
                dropout=config.dropout,
            )
            self.cross_residual = self._residual(config)
        self.feed_forward = pick(FEED_FORWARDS, config.feed_forward, "feed_forward")(
            config.dim, config.feed_forward_dim, config.dropout
        )
        self.feed_residual = self._residual(config)

    def encode(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Let every position see every real one: states (B, S, D), mask (B, S), if not all are."""
        queries_mask = None if mask is None else mask[:, None]

        def look(inputs: Tensor) -> Tensor:
            heads = self.self_attention.extend(inputs)
            return self.self_attention(inputs, heads, mask=queries_mask)[0]

        return self.think(self.self_residual(states, look))

    def decode(
        self, states: Tensor, past: Heads, source: Heads, *, mask: Tensor
    ) -> tuple[Tensor, Heads]:
        """Let each position see what came before, and the source.

        Args:
            states: (B·W, T, D).
            past: Keys and values of what came before, (B·W, H, L, E).
            source: Keys and values of the source, (B, H, S, E).
            mask: (B, S), True = a real position of the source.

        Returns:
            The new states, and keys and values up to here.
        """
        states, heads = self.look_back(states, past)

        def look_across(inputs: Tensor) -> Tensor:
            # The beams of a sentence are more queries of it, so its keys need no copy.
            queries = by_sentence(inputs, mask.shape[0])
            answer, _ = self.cross_attention(queries, source, mask=mask[:, None])
            return answer.reshape(inputs.shape)

        return self.think(self.cross_residual(states, look_across)), heads

    def look_back(
        self, states: Tensor, past: Heads, *, first: int | None = None, window: int = 0
    ) -> tuple[Tensor, Heads]:
        """Let each position see what came before.

        Args:
            states: (B·W, T, D).
            past: Keys and values of what came before, (B·W, H, L, E); it may have been forgotten
                in part, from its beginning on.
            first: The place of the first state; if not given, the past is whole.
            window: How many places each position sees, its own included; 0 = all.

        Returns:
            The new states, and keys and values up to here.
        """
        heads = past

        def look(inputs: Tensor) -> Tensor:
            nonlocal heads
            heads = self.self_attention.extend(inputs, past, first=first)
            num_queries, num_keys = inputs.shape[1], heads[0].shape[2]
            places = None
            if first is not None:
                last = first + num_queries
                keys_at = torch.arange(last - num_keys, last, device=inputs.device)
                places = keys_at[num_keys - num_queries :], keys_at
            mask = None
            if 0 < window < num_keys:
                mask = recent(num_queries, num_keys, window=window, device=inputs.device)[None]
            return self.self_attention(inputs, heads, mask=mask, is_causal=True, places=places)[0]

        return self.self_residual(states, look), heads

    def think(self, states: Tensor) -> Tensor:
        """Let each position (B, L, D) work on what it saw."""
        return self.feed_residual(states, self.feed_forward)

    def _residual(self, config: BlockConfig) -> Residual:
        return Residual(
            build_norm(config), is_norm_first=config.is_norm_first, dropout=config.dropout
        )


class TransformerBlocks(nn.ModuleList):
    """Blocks in their order."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[TransformerBlock]: ...
