"""Multi-head attention: the same question asked in several subspaces at once."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention, attend
from regard.attention.positions import Positions
from regard.core.errors import ConfigError

Heads = tuple[Tensor, Tensor]
"""Keys and values by head, each (B, H, K, E)."""

Places = tuple[Tensor, Tensor]
"""Where queries and keys stand in their text, (Q,) and (K,)."""


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
        places = torch.arange(first, first + states.shape[1], device=states.device)
        return self._rotate(keys, (places, places)), values

    def forward(
        self,
        states: Tensor,
        heads: Heads,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        places: Places | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Let states (B, Q, D) ask the prepared heads.

        Args:
            states: (B, Q, D).
            heads: What `prepare` made, keys and values (B, H, K, E).
            mask: (B, Q, K) or broadcastable, bool, True = may attend.
            is_causal: Whether each query sees the keys up to its own place only.
            places: Where queries and keys stand; if not given, the keys are a text from its first
                place on, and the queries its last ones.

        Returns:
            The answer (B, Q, D), and the weights (B, H, Q, K) while somebody records.
        """
        keys, values = heads
        if places is None and self.positions is not None:
            all_places = torch.arange(keys.shape[2], device=states.device)
            places = all_places[keys.shape[2] - states.shape[1] :], all_places
        queries = self._rotate(self._split(self.query_map(states)), places)  # (B, H, Q, E)
        heads = keys.to(queries.dtype), values.to(queries.dtype)
        context, weights = self.ask(queries, heads, mask=mask, is_causal=is_causal, places=places)
        answer: Tensor = self.output_map(context.transpose(1, 2).flatten(2))  # (B, Q, D)
        return answer, weights

    if TYPE_CHECKING:
        __call__ = forward

    def ask(
        self,
        queries: Tensor,
        heads: Heads,
        *,
        mask: Tensor | None,
        is_causal: bool,
        places: Places | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Let queries (B, H, Q, E) attend; return contexts like them, and weights or nothing."""
        return attend(
            queries,
            *heads,
            mask=mask if mask is None else mask[:, None],
            bias=self.bias(queries, places),
            is_causal=is_causal,
            dropout=self.dropout if self.training else 0.0,
            needs_weights=self.needs_weights,
        )

    def bias(self, queries: Tensor, places: Places | None) -> Tensor | None:
        """Return what places add to the scores of queries (B, H, Q, E), or nothing."""
        if self.positions is None or places is None:
            return None
        return self.positions.bias(queries, *places)

    def _split(self, projected: Tensor) -> Tensor:
        by_head = projected.view(*projected.shape[:2], -1, self.head_dim)
        return by_head.transpose(1, 2)  # (B, H, L, E)

    def _rotate(self, vectors: Tensor, places: Places | None) -> Tensor:
        if self.positions is None or places is None:
            return vectors
        return self.positions.rotate(vectors, places[0])


class SelfAttention(MultiHeadAttention):
    """A text that looks at itself: queries, keys and values come from the same states."""

    is_self = True

    def nothing(self, batch: int) -> Heads:
        """Return the heads of texts of which nothing is read yet."""
        num_heads = self.key_map.out_features // self.head_dim
        empty = self.key_map.weight.new_empty(batch, num_heads, 0, self.head_dim)
        return empty, empty

    def extend(
        self, states: Tensor, past: Heads | None = None, *, first: int | None = None
    ) -> Heads:
        """Return the heads of a text that goes on with states (B, L, D) after its past.

        The states' first place is `first`; if not given, the past is the whole text before them.
        """
        num_past = 0 if past is None else past[0].shape[2]
        keys, values = self.prepare(states, first=num_past if first is None else first)
        if past is None or not num_past:
            return keys, values
        return torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
