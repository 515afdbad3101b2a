"""Self-attention within a window, computed in blocks."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.attention.attend import attend
from regard.attention.cache import KeyValue
from regard.attention.masks import window_mask
from regard.attention.multihead import SelfAttention
from regard.attention.positions import Positions


class WindowedAttention(SelfAttention):
    """Self-attention of each position to its neighbours on both sides.

    Beltagy et al. 2020, section 3.1. The sequence is split into blocks: the queries of a block
    attend to its keys and to the adjacent ones, so time and memory are linear in the length. If
    weights are needed, the full map is computed and masked.

    Args:
        dim: Width of the states.
        num_heads: Number of query heads.
        num_key_heads: Number of key and value heads; 0 = as many as query heads.
        dropout: Dropout probability of the attention weights.
        positions: Position encoding.
        window: Number of positions to each side that a position attends to.
    """

    BLOCK = 64
    """Queries per block. Small blocks copy more keys; large blocks compute more masked scores."""

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
        """Attend from queries (B, H, L, E) to the keys in their window.

        Args:
            queries: (B, H, L, E).
            key_value: Keys and values of the same sequence, (B, H, L, E).
            mask: (B, 1, L), True = a real position; None = all.
            is_causal: Whether a query attends to keys up to its position only.
            key_positions: (L,), consecutive.
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
        """Attend from each block of queries to its window of keys; mask (B, 1, L, 1)."""
        batch, num_heads, length, _ = queries.shape
        block = self.BLOCK
        extra, size = -length % block, block + 2 * self.window
        query_blocks = _split_blocks(queries, step=block, size=block, padding=(0, extra))
        keys, values, real = (
            _split_blocks(tensor, step=block, size=size, padding=(self.window, self.window + extra))
            for tensor in (*key_value, mask)
        )  # (B·N, H, K, E), and of the mask (B·N, 1, K, 1)
        positions = torch.arange(size, device=queries.device)
        context, _ = attend(
            query_blocks,
            keys,
            values,
            mask=self._near(real.mT, num_queries=block, first=self.window),
            # Distances are the same in all blocks.
            bias=self.positions.bias(
                query_blocks, positions[self.window : self.window + block], positions
            ),
            dropout=self.dropout if self.training else 0.0,
        )
        joined = context.reshape(batch, -1, num_heads, block, self.head_dim).transpose(1, 2)
        return joined.flatten(2, 3)[:, :, :length]  # (B, H, L, E)

    def _near(self, real: Tensor, *, num_queries: int, first: int) -> Tensor:
        """Return the mask (..., Q, K) of real keys (..., 1, K) in the window of each query.

        The first query has the position of key `first`. Every query may attend to itself, even in
        padding: the softmax of a fully masked row would be NaN.
        """
        queries = torch.arange(first, first + num_queries, device=real.device)
        near, same = (
            window_mask(queries, real.shape[-1], half_width=half_width)
            for half_width in (self.window, 0)
        )
        return (near & real) | same


def _split_blocks(tensor: Tensor, *, step: int, size: int, padding: tuple[int, int]) -> Tensor:
    """Split sequences (B, H, L, E) into blocks (B·N, H, size, E), one every `step` positions.

    N is the number of blocks of a sequence after `padding` positions are added before and after it.
    """
    # The positions of a block are the last axis after `unfold`.
    blocks = pad(tensor, (0, 0, *padding)).unfold(2, size, step)
    return blocks.permute(0, 2, 1, 4, 3).flatten(0, 1)


if __name__ == "__main__":
    attention = WindowedAttention(dim=8, num_heads=1, window=1)
    attention.needs_weights = True
    print("one neighbour to each side:", attention(torch.randn(1, 5, 8))[1], sep="\n")
