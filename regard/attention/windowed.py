"""Self-attention within a window: each position sees its neighbours, block by block."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.attention.attend import attend
from regard.attention.masks import window
from regard.attention.multihead import Heads, Places, SelfAttention


class WindowedAttention(SelfAttention):
    """A text that looks at itself, each position only so far to each side.

    Beltagy et al. 2020, section 3.1. The text is cut into blocks, which become texts of their own:
    the queries of a block see its keys and those beside it. So time and memory grow with the
    length, not with its square. While somebody records, the whole map is computed and masked.
    """

    BLOCK = 64
    """Queries in a block: fewer mean more copies of keys, more mean more scores in vain."""

    window = 0
    """How many positions to each side a position sees; whoever builds it sets it."""

    def ask(
        self,
        queries: Tensor,
        heads: Heads,
        *,
        mask: Tensor | None,
        is_causal: bool,
        places: Places | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Let queries (B, H, L, E) ask the keys near them.

        Args:
            queries: (B, H, L, E).
            heads: Keys and values of the same text, (B, H, L, E).
            mask: (B, 1, L), True = a real position; all if not given.
            is_causal: Whether each query sees the keys up to its own place only.
            places: Where queries and keys stand, in steps of one.
        """
        batch, _, length, _ = queries.shape
        if mask is None:
            mask = queries.new_ones(batch, 1, length, dtype=torch.bool)
        is_short = length <= self.BLOCK + 2 * self.window
        if self.needs_weights or is_causal or is_short:
            seen = self._see(mask, num_queries=length, first=0)
            return super().ask(queries, heads, mask=seen, is_causal=is_causal, places=places)
        return self._ask_in_blocks(queries, heads, mask[..., None]), None

    def _ask_in_blocks(self, queries: Tensor, heads: Heads, mask: Tensor) -> Tensor:
        """Let each block of queries ask its keys and those beside it; mask (B, 1, L, 1)."""
        batch, num_heads, length, _ = queries.shape
        block = self.BLOCK
        rest, size = -length % block, block + 2 * self.window
        asking = _cut(queries, step=block, size=block, around=(0, rest))  # (B·N, H, Q, E)
        keys, values, real = (
            _cut(each, step=block, size=size, around=(self.window, self.window + rest))
            for each in (*heads, mask)
        )  # (B·N, H, K, E), and of the mask (B·N, 1, K, 1)
        at = torch.arange(size, device=queries.device)
        context, _ = attend(
            asking,
            keys,
            values,
            mask=self._see(real.mT, num_queries=block, first=self.window),
            # Positions speak of distances here, which are alike in all blocks.
            bias=self.bias(asking, (at[self.window : self.window + block], at)),
            dropout=self.dropout if self.training else 0.0,
        )
        by_block = context.reshape(batch, -1, num_heads, block, self.head_dim).transpose(1, 2)
        return by_block.flatten(2, 3)[:, :, :length]  # (B, H, L, E)

    def _see(self, real: Tensor, *, num_queries: int, first: int) -> Tensor:
        """Return which keys (..., Q, K) are near a query and real (..., 1, K).

        The first query stands where the key `first` does. Each sees itself, even in padding: there
        may be nothing real nearby, and a softmax over nothing is not a number.
        """
        places = torch.arange(first, first + num_queries, device=real.device)
        near, same = (
            window(places, real.shape[-1], half_width=half_width) for half_width in (self.window, 0)
        )
        return (near & real) | same


def _cut(tensor: Tensor, *, step: int, size: int, around: tuple[int, int]) -> Tensor:
    """Cut texts (B, H, L, E) into blocks (B·N, H, size, E), one every `step` positions.

    N is the number of blocks of a text, which has `around` positions more before and after it.
    """
    blocks = pad(tensor, (0, 0, *around)).unfold(2, size, step)  # the blocks' positions come last
    return blocks.permute(0, 2, 1, 4, 3).flatten(0, 1)


if __name__ == "__main__":
    attention = WindowedAttention(dim=8, num_heads=2)
    attention.window = 1
    attention.needs_weights = True
    states = torch.randn(1, 5, 8)
    print("weights of the first head, one neighbour to each side:")
    _, weights = attention(states, attention.extend(states))
    assert weights is not None
    for row in weights[0, 0]:
        print("  ", *(f"{weight:5.2f}" for weight in row))
