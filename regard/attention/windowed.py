"""Self-attention within a window: each position sees its neighbours, block by block."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.attention.attend import attend
from regard.attention.masks import window
from regard.attention.multihead import KeyValue, SelfAttention
from regard.attention.positions import Positions


class WindowedAttention(SelfAttention):
    """Self-attention in which each position sees its neighbours on both sides only.

    Beltagy et al. 2020, section 3.1. The sequence is cut into blocks: the queries of a block see
    its keys and those beside it. So time and memory grow with the length, not with its square.
    While weights are recorded, the whole map is computed and masked.

    Args:
        dim: Width of the states.
        num_heads: Number of query heads.
        num_key_heads: Number of key and value heads; 0 = as many as query heads.
        dropout: Share of the weights that are dropped in training.
        positions: How order is encoded.
        window: How many positions to each side a position sees.
    """

    BLOCK = 64
    """Queries in a block: fewer mean more copies of keys, more mean more masked scores."""

    def __init__(
        self,
        *,
        dim: int,
        num_heads: int,
        num_key_heads: int = 0,
        dropout: float = 0.0,
        positions: Positions | None = None,
        window: int,
    ) -> None:
        super().__init__(
            dim=dim,
            num_heads=num_heads,
            num_key_heads=num_key_heads,
            dropout=dropout,
            positions=positions,
        )
        self.window = window

    def attend_heads(
        self,
        queries: Tensor,
        key_value: KeyValue,
        *,
        mask: Tensor | None,
        is_causal: bool,
        key_positions: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from queries (B, H, L, E) to the keys near them.

        Args:
            queries: (B, H, L, E).
            key_value: Keys and values of the same sequence, (B, H, L, E).
            mask: (B, 1, L), True = a real position; all if not given.
            is_causal: Whether each query sees the keys up to its own position only.
            key_positions: (L,), in steps of one.
        """
        batch, _, length, _ = queries.shape
        if mask is None:
            mask = queries.new_ones(batch, 1, length, dtype=torch.bool)
        is_short = length <= self.BLOCK + 2 * self.window
        if self.needs_weights or is_causal or is_short:
            near = self._near(mask, num_queries=length, first=0)
            return super().attend_heads(
                queries, key_value, mask=near, is_causal=is_causal, key_positions=key_positions
            )
        return self._attend_in_blocks(queries, key_value, mask[..., None]), None

    def _attend_in_blocks(self, queries: Tensor, key_value: KeyValue, mask: Tensor) -> Tensor:
        """Attend from each block of queries to its keys and those beside it; mask (B, 1, L, 1)."""
        batch, num_heads, length, _ = queries.shape
        block = self.BLOCK
        rest, size = -length % block, block + 2 * self.window
        by_block = _cut(queries, step=block, size=block, around=(0, rest))  # (B·N, H, Q, E)
        keys, values, real = (
            _cut(each, step=block, size=size, around=(self.window, self.window + rest))
            for each in (*key_value, mask)
        )  # (B·N, H, K, E), and of the mask (B·N, 1, K, 1)
        at = torch.arange(size, device=queries.device)
        context, _ = attend(
            by_block,
            keys,
            values,
            mask=self._near(real.mT, num_queries=block, first=self.window),
            # Distances are alike in all blocks.
            bias=self.positions.bias(by_block, at[self.window : self.window + block], at),
            dropout=self.dropout if self.training else 0.0,
        )
        joined = context.reshape(batch, -1, num_heads, block, self.head_dim).transpose(1, 2)
        return joined.flatten(2, 3)[:, :, :length]  # (B, H, L, E)

    def _near(self, real: Tensor, *, num_queries: int, first: int) -> Tensor:
        """Return which keys (..., Q, K) are near a query and real (..., 1, K).

        The first query has the position of key `first`. Each sees itself, even in padding: there
        may be nothing real nearby, and a softmax over nothing is not a number.
        """
        queries = torch.arange(first, first + num_queries, device=real.device)
        near, same = (
            window(queries, real.shape[-1], half_width=half_width)
            for half_width in (self.window, 0)
        )
        return (near & real) | same


def _cut(tensor: Tensor, *, step: int, size: int, around: tuple[int, int]) -> Tensor:
    """Cut sequences (B, H, L, E) into blocks (B·N, H, size, E), one every `step` positions.

    N is the number of blocks of a sequence, which has `around` positions more before and after it.
    """
    blocks = pad(tensor, (0, 0, *around)).unfold(2, size, step)  # the blocks' positions come last
    return blocks.permute(0, 2, 1, 4, 3).flatten(0, 1)


if __name__ == "__main__":
    attention = WindowedAttention(dim=8, num_heads=1, window=1)
    attention.needs_weights = True
    print("one neighbour to each side:", attention(torch.randn(1, 5, 8))[1], sep="\n")
