"""Multi-head attention: self-attention and cross-attention."""

import torch
from torch import Tensor

from regard.attention.attend import (
    Attention,
    attend,
    masked_softmax,
    scaled_dot,
    weighted_sum,
)
from regard.attention.cache import KeyValue, KeyValueCache
from regard.attention.masks import causal_mask
from regard.attention.positions import Positions
from regard.core.errors import ConfigError
from regard.core.module import Linear, apply_jointly


def simplified_self_attention(inputs: Tensor, *, is_causal: bool = False) -> tuple[Tensor, Tensor]:
    """Compute simplified self-attention: a_ij = softmax_j(x_i · x_j), y_i = Σ_j a_ij x_j.

    Queries, keys and values are the inputs; there are no parameters and no scaling.

    Args:
        inputs: (B, L, D).
        is_causal: Whether a position attends to itself and earlier positions only.

    Returns:
        The contexts (B, L, D) and the weights (B, L, L).
    """
    return _attend_to_self(inputs, inputs @ inputs.mT, is_causal)


def scaled_self_attention(inputs: Tensor, *, is_causal: bool = False) -> tuple[Tensor, Tensor]:
    """Compute self-attention without parameters, scaled: a_ij = softmax_j(x_i · x_j / √D).

    Arguments and results are those of `simplified_self_attention`.
    """
    return _attend_to_self(inputs, scaled_dot(inputs, inputs), is_causal)


def _attend_to_self(inputs: Tensor, scores: Tensor, is_causal: bool) -> tuple[Tensor, Tensor]:
    """Return contexts (B, L, D) and weights (B, L, L) of scores (B, L, L)."""
    length = inputs.shape[1]
    weights = masked_softmax(
        scores, causal_mask(length, length, inputs.device) if is_causal else None
    )
    return weighted_sum(weights, inputs), weights


class MultiHeadAttention(Attention):
    """Multi-head attention with projections of queries, keys, values and output.

    Vaswani et al. 2017, section 3.2.2. With fewer key heads than query heads it is grouped-query
    attention (Ainslie et al. 2023); with one key head, multi-query attention (Shazeer 2019).

    Args:
        dim: Width of the queries and of the output.
        num_heads: Number of query heads.
        num_key_heads: Number of key and value heads; 0 = as many as query heads.
        memory_dim: Width of the states that keys and values are projected from; 0 = `dim`.
        dropout: Dropout probability of the attention weights.
        positions: Position encoding, if queries and keys come from the same sequence.
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
        check_heads(dim, num_heads, num_key_heads)
        self.head_dim = dim // num_heads
        self.dropout = dropout
        self.positions = positions or Positions(dim=dim, num_heads=num_heads)
        self.query_map = Linear(dim, dim)
        self.key_map = Linear(memory_dim or dim, num_key_heads * self.head_dim)
        self.value_map = Linear(memory_dim or dim, num_key_heads * self.head_dim)
        self.output_map = Linear(dim, dim)

    def project(self, states: Tensor, positions: Tensor | None = None) -> KeyValue:
        """Project states (B, K, D) to keys, rotated by positions (K,), and values (B, H, K, E)."""
        keys, values = apply_jointly((self.key_map, self.value_map), states)
        return self.split_heads(keys, positions), self.split_heads(values)

    def split_heads(self, projected: Tensor, positions: Tensor | None = None) -> Tensor:
        """Split (B, L, D) into heads (B, H, L, E), rotated by positions (L,) if given."""
        heads = projected.view(*projected.shape[:2], -1, self.head_dim).transpose(1, 2)
        return heads if positions is None else self.positions.rotate(heads, positions)

    def attend(
        self,
        queries: Tensor,
        key_value: KeyValue,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        key_positions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from projected queries (B, H, Q, E) to projected keys and values (B, H, K, E).

        Args:
            queries: (B, H, Q, E).
            key_value: Output of `project`.
            mask: (B, Q, K) or broadcastable, bool, True = may attend.
            is_causal: Whether a query attends to keys up to its position only.
            key_positions: (K,), for relative or rotary positions. The last ones are the queries'.

        Returns:
            The output (B, Q, D), and the weights (B, H, Q, K) or None.
        """
        context, weights = self.attend_heads(
            queries, key_value, mask=mask, is_causal=is_causal, key_positions=key_positions
        )
        return self.output_map(context.transpose(1, 2).flatten(2)), weights  # (B, Q, D)

    def attend_heads(
        self,
        queries: Tensor,
        key_value: KeyValue,
        *,
        mask: Tensor | None,
        is_causal: bool,
        key_positions: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the contexts (B, H, Q, E) of queries (B, H, Q, E), and the weights or None."""
        bias = None
        if key_positions is not None:
            bias = self.positions.bias(queries, key_positions[-queries.shape[2] :], key_positions)
        return attend(
            queries,
            *(part.to(queries.dtype) for part in key_value),
            mask=mask if mask is None else mask[:, None],
            bias=bias,
            is_causal=is_causal,
            dropout=self.dropout if self.training else 0.0,
            needs_weights=self.needs_weights,
        )


class CrossAttention(MultiHeadAttention):
    """Attention from one sequence to another."""

    def forward(
        self, states: Tensor, memory: Tensor | KeyValue, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from states to a memory.

        Args:
            states: (B, Q, D).
            memory: (B, K, D), or its projected keys and values.
            mask: (B, Q, K) or broadcastable, bool, True = may attend.

        Returns:
            The output (B, Q, D), and the weights (B, H, Q, K) or None.
        """
        key_value = self.project(memory) if isinstance(memory, Tensor) else memory
        return self.attend(self.split_heads(self.query_map(states)), key_value, mask=mask)


class SelfAttention(MultiHeadAttention):
    """Attention within one sequence: queries, keys and values come from the same states."""

    is_self = True

    def forward(
        self,
        states: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from states (B, Q, D) to themselves and to the cached positions.

        Args:
            states: (B, Q, D).
            mask: (B, Q, K) or broadcastable, bool, True = may attend.
            is_causal: Whether a position attends to itself and earlier positions only.
            cache: Key-value cache of earlier positions; the new positions are appended.

        Returns:
            The output (B, Q, D), and the weights (B, H, Q, K) or None.
        """
        length = states.shape[1]
        positions = None if cache is None else cache.positions
        if positions is None:
            num_past = 0 if cache is None else cache.num_past
            positions = torch.arange(num_past + length, device=states.device)
        maps = (self.query_map, self.key_map, self.value_map)
        queries, keys, values = apply_jointly(maps, states)
        queries, keys = (self.split_heads(part, positions[-length:]) for part in (queries, keys))
        key_value = keys, self.split_heads(values)
        if cache is not None:
            key_value = cache.append(*key_value)
        return self.attend(
            queries, key_value, mask=mask, is_causal=is_causal, key_positions=positions
        )


def check_heads(dim: int, num_heads: int, num_key_heads: int) -> None:
    """Raise `ConfigError` unless `num_heads` divides `dim` and `num_key_heads` `num_heads`."""
    if dim % num_heads:
        raise ConfigError(f"`num_heads` must divide `dim` ({dim}), but is {num_heads}.")
    if num_heads % num_key_heads:
        raise ConfigError(
            f"`num_key_heads` must divide `num_heads` ({num_heads}), but is {num_key_heads}."
        )


if __name__ == "__main__":
    torch.manual_seed(0)
    inputs = torch.randn(1, 4, 8)
    print("simplified self-attention:", simplified_self_attention(inputs)[1][0], sep="\n")
    print("scaled self-attention:", scaled_self_attention(inputs)[1][0], sep="\n")
