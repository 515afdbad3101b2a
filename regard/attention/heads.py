"""Multi-head attention: the same question asked in several subspaces at once."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention, attend
from regard.attention.positions import Positions
from regard.core.errors import ConfigError

Heads = tuple[Tensor, Tensor]
"""Keys and values by head, each (B, H, K, E)."""


def self_attention(inputs: Tensor, *, is_causal: bool = False) -> tuple[Tensor, Tensor]:
    """Let every vector attend to every vector, itself included, with nothing to learn.

    The lectures' first step: queries, keys and values are the inputs themselves.

    Args:
        inputs: (B, L, D).
        is_causal: Whether each sees only itself and what came before.

    Returns:
        The contexts (B, L, D) and the weights (B, L, L).
    """
    one_head = inputs[:, None]  # (B, 1, L, D)
    context, weights = attend(one_head, one_head, one_head, is_causal=is_causal, needs_weights=True)
    assert weights is not None
    return context[:, 0], weights[:, 0]


class MultiHeadAttention(Attention):
    """Projects queries, keys and values, attends in every head, and joins the answers.

    Vaswani et al. 2017, section 3.2.2. With fewer key heads, groups of query heads share one
    (Ainslie et al. 2023); one key head is multi-query attention (Shazeer 2019).

    Args:
        dim: Width of the queries and of the answer.
        num_heads: Number of query heads.
        num_key_heads: Number of key and value heads; 0 = as many as query heads.
        memory_dim: Width of what keys and values come from; 0 = `dim`.
        dropout: Share of the weights that are dropped in training.
        positions: How order is told, where queries and keys share one text.
    """

    def __init__(
        self,
        *,
        dim: int,
        num_heads: int,
        num_key_heads: int = 0,
        memory_dim: int = 0,
        dropout: float = 0.0,
        positions: Positions | None = None,
    ) -> None:
        super().__init__()
        num_key_heads = num_key_heads or num_heads
        if dim % num_heads:
            raise ConfigError(f"`num_heads` must divide `dim` ({dim}), but is {num_heads}.")
        if num_heads % num_key_heads:
            raise ConfigError(
                f"`num_key_heads` must divide `num_heads` ({num_heads}), but is {num_key_heads}."
            )
        self.head_dim = dim // num_heads
        self.dropout = dropout
        self.positions = positions
        self.query_map = nn.Linear(dim, dim)
        self.key_map = nn.Linear(memory_dim or dim, num_key_heads * self.head_dim)
        self.value_map = nn.Linear(memory_dim or dim, num_key_heads * self.head_dim)
        self.output_map = nn.Linear(dim, dim)

    def prepare(self, states: Tensor, *, first: int = 0) -> Heads:
        """Make keys and values of states (B, K, D), the first of which stands at place `first`."""
        keys, values = self._split(self.key_map(states)), self._split(self.value_map(states))
        return self._rotate(keys, first), values

    def forward(
        self, states: Tensor, heads: Heads, *, mask: Tensor | None = None, is_causal: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Let states (B, Q, D) ask the prepared heads.

        Where positions matter the queries are the last places of the keys' text.

        Args:
            states: (B, Q, D).
            heads: What `prepare` made, keys and values (B, H, K, E).
            mask: (B, Q, K) or broadcastable, bool, True = may attend.
            is_causal: Whether each query sees the keys up to its own place only.

        Returns:
            The answer (B, Q, D), and the weights (B, H, Q, K) while somebody records.
        """
        keys, values = heads
        first = keys.shape[2] - states.shape[1]
        queries = self._rotate(self._split(self.query_map(states)), first)  # (B, H, Q, E)
        context, weights = attend(
            queries,
            keys.to(queries.dtype),
            values.to(queries.dtype),
            mask=mask if mask is None else mask[:, None],
            bias=self._bias(queries, first, keys.shape[2]),
            is_causal=is_causal,
            dropout=self.dropout if self.training else 0.0,
            needs_weights=self.needs_weights,
        )
        answer: Tensor = self.output_map(context.transpose(1, 2).flatten(2))  # (B, Q, D)
        return answer, weights

    if TYPE_CHECKING:
        __call__ = forward

    def _split(self, projected: Tensor) -> Tensor:
        by_head = projected.view(*projected.shape[:2], -1, self.head_dim)
        return by_head.transpose(1, 2)  # (B, H, L, E)

    def _rotate(self, vectors: Tensor, first: int) -> Tensor:
        if self.positions is None:
            return vectors
        last = first + vectors.shape[2]
        return self.positions.rotate(vectors, torch.arange(first, last, device=vectors.device))

    def _bias(self, queries: Tensor, first: int, num_keys: int) -> Tensor | None:
        if self.positions is None:
            return None
        places = torch.arange(num_keys, device=queries.device)
        return self.positions.bias(queries, places[first:], places)


class SelfAttention(MultiHeadAttention):
    """A text that looks at itself: queries, keys and values come from the same states."""

    is_self = True

    def extend(self, states: Tensor, past: Heads | None = None) -> Heads:
        """Return the heads of a text that goes on with states (B, L, D) after its past."""
        if past is None:
            return self.prepare(states)
        keys, values = self.prepare(states, first=past[0].shape[2])
        return torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
