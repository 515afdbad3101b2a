"""Where a token stands: several ways to tell attention, which is blind to order by itself.

All share one signature, and each overrides the part it needs: `embed` is added to the embeddings,
`rotate` turns queries and keys, `bias` is added to the scores.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.errors import ConfigError
from regard.core.module import Embedding, Module

PositionKind = Literal[
    "none", "sinusoidal", "sinusoidal_halves", "learned", "rotary", "shaw", "t5", "alibi"
]


class Positions(Module):
    """Tells nothing: the attention sees a bag of tokens.

    Args:
        dim: Width of the model.
        num_heads: Number of query heads.
        max_length: Most positions, where there must be a limit.
        is_causal: Whether queries only look back, so that distances have one sign.
    """

    def __init__(
        self, *, dim: int, num_heads: int, max_length: int = 0, is_causal: bool = False
    ) -> None:
        super().__init__()
        self.dim = dim
        self.num_heads = num_heads
        self.head_dim = dim // num_heads
        self.max_length = max_length
        self.is_causal = is_causal
        self.embedding = self.build_embedding()

    def build_embedding(self) -> Embedding | None:
        """Build the learned vectors, if there are any."""
        return None

    def embed(self, positions: Tensor) -> Tensor | None:
        """Return what is added to the embeddings at `positions` (L,): (L, D), or nothing."""
        return None

    def check_length(self, length: int) -> None:
        """Raise a `ConfigError` if a text of so many tokens is too long; most have no limit."""

    def rotate(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Turn queries or keys (B, H, L, E) according to their `positions` (L,)."""
        return vectors

    def bias(
        self, queries: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor | None:
        """Return what is added to the scaled scores: (B, H, Q, K) or broadcastable, or nothing.

        Args:
            queries: (B, H, Q, E).
            query_positions: (Q,).
            key_positions: (K,).
        """
        return None


class SinusoidalPositions(Positions):
    """Sines and cosines of falling frequency, added (Vaswani et al. 2017, section 3.5)."""

    def embed(self, positions: Tensor) -> Tensor:
        """Return sin in the even and cos in the odd columns, (L, D)."""
        return sinusoids(positions, self.dim)


class HalvedSinusoidalPositions(Positions):
    """The same sines and cosines in another order, as Marian keeps them."""

    def embed(self, positions: Tensor) -> Tensor:
        """Return all sines in the first half of the columns and all cosines after them, (L, D)."""
        table = sinusoids(positions, self.dim)
        return torch.cat([table[:, 0::2], table[:, 1::2]], dim=-1)  # (L, D)


class GridPositions(Positions):
    """Sines and cosines of the row in one half of the columns, of the column in the other.

    Dosovitskiy et al. 2021, appendix D.4, as the fixed positions of Chen et al. 2021 and of He et
    al. 2022. Cells are counted row by row; positions before the first cell are told nothing.

    Args:
        dim: Width of the model.
        num_heads: Number of query heads.
        num_columns: Columns of the grid.
        num_before: Positions before the first cell.
    """

    def __init__(self, *, dim: int, num_heads: int, num_columns: int, num_before: int = 0) -> None:
        super().__init__(dim=dim, num_heads=num_heads)
        self.num_columns = num_columns
        self.num_before = num_before

    def embed(self, positions: Tensor) -> Tensor:
        """Return what tells row and column of the positions, (L, D)."""
        cells = positions - self.num_before
        rows, columns = cells // self.num_columns, cells % self.num_columns
        half = self.dim // 2
        told = torch.cat([sinusoids(rows, half), sinusoids(columns, self.dim - half)], dim=-1)
        return told.masked_fill(cells[:, None] < 0, 0.0)  # (L, D)


class LearnedPositions(Positions):
    """A learned vector for every position, added; there is a longest text."""

    embedding: Embedding

    def build_embedding(self) -> Embedding:
        """Build a vector for every position."""
        return _build_embedding(self.max_length, self.dim, deviation=self.dim**-0.5)

    def embed(self, positions: Tensor) -> Tensor:
        """Return the vectors of the positions, (L, D)."""
        return self.embedding(positions)

    def check_length(self, length: int) -> None:
        """Raise a `ConfigError` if a text has more positions than there are vectors."""
        if length > self.max_length:
            raise ConfigError(
                f"`max_length` must be at least the length of the text ({length} tokens) with "
                f"learned positions, but is {self.max_length}. Shorten the text, or train with a "
                "larger one."
            )


class RotaryPositions(Positions):
    """Turns each pair of columns by an angle that grows with the position (Su et al. 2021).

    The product of a query and a key then depends on their distance alone.
    """

    def rotate(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Turn queries or keys (B, H, L, E); column i is paired with column i + E/2."""
        half = vectors.shape[-1] // 2
        rates = _rates(half, positions.device)
        angles = positions[:, None] * rates  # a row a position, a column a pair
        cos, sin = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
        first, second = vectors[..., :half], vectors[..., half : 2 * half]
        turned = [first * cos - second * sin, second * cos + first * sin]
        return torch.cat([*turned, vectors[..., 2 * half :]], dim=-1)


class ShawPositions(Positions):
    """A learned vector for every distance, compared with the query (Shaw et al. 2018, eq. 4).

    Distances beyond the reach share the last vector. The paper's second set of vectors, added to
    the values, is left out, as the paper itself finds it adds nothing.
    """

    REACH = 16

    embedding: Embedding

    def build_embedding(self) -> Embedding:
        """Build a vector for every distance."""
        return _build_embedding(2 * self.REACH + 1, self.head_dim, deviation=self.head_dim**-0.5)

    def bias(self, queries: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return q · a_ij / √E, (B, H, Q, K)."""
        distance = key_positions - query_positions[:, None]  # (Q, K)
        index = distance.clamp(-self.REACH, self.REACH) + self.REACH
        # Every query against every distance first, then each pair picks its own.
        scores = queries @ self.embedding.weight.to(queries.dtype).T  # (B, H, Q, any width)
        picked = scores.gather(-1, index.expand(*scores.shape[:2], -1, -1))
        return picked / math.sqrt(self.head_dim)  # (B, H, Q, K)


class BucketPositions(Positions):
    """A learned number for every head and bucket of distances (T5: Raffel et al. 2020).

    Near distances have a bucket each; far ones share buckets that widen logarithmically.
    """

    NUM_BUCKETS = 32
    FARTHEST = 128

    embedding: Embedding

    def build_embedding(self) -> Embedding:
        """Build a vector for every head and bucket."""
        return _build_embedding(self.NUM_BUCKETS, self.num_heads, deviation=self.dim**-0.5)

    def bias(self, queries: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return one number for each head and distance, (1, H, Q, K)."""
        buckets = self.bucket(key_positions - query_positions[:, None])  # (Q, K)
        return self.embedding(buckets).permute(2, 0, 1)[None]  # (1, H, Q, K)

    def bucket(self, distance: Tensor) -> Tensor:
        """Return the bucket of each distance, key position minus query position."""
        num, base = self.NUM_BUCKETS, torch.zeros_like(distance)
        if self.is_causal:
            back = (-distance).clamp(min=0)
        else:
            num //= 2
            base = (distance > 0) * num
            back = distance.abs()
        near = num // 2
        far = near + (
            torch.log(back.clamp(min=1) / near) / math.log(self.FARTHEST / near) * (num - near)
        ).long().clamp(max=num - near - 1)
        return base + torch.where(back < near, back, far)


class AlibiPositions(Positions):
    """A penalty that grows with the distance, each head with its own slope (Press et al. 2022)."""

    def bias(self, queries: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return minus slope times distance, (1, H, Q, K)."""
        slopes = torch.tensor(alibi_slopes(self.num_heads), device=queries.device)
        distance = (key_positions - query_positions[:, None]).abs()  # (Q, K)
        return -(slopes[:, None, None] * distance)[None]  # (1, H, Q, K)


def _build_embedding(num: int, dim: int, *, deviation: float) -> Embedding:
    embedding = Embedding(num, dim)
    nn.init.normal_(embedding.weight, 0.0, deviation)
    return embedding


def sinusoids(positions: Tensor, dim: int) -> Tensor:
    """Return sin(position / 10000^(2i/D)) in column 2i and its cosine in column 2i + 1, (L, D)."""
    angles = positions[:, None] * _rates((dim + 1) // 2, positions.device)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim]  # (L, D)


def alibi_slopes(num_heads: int) -> list[float]:
    """Return 2^(-8h/H) for h = 1 … H, filled up from the next power of two as in the paper."""
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2 ** (-8 * head / (2 * power)) for head in range(1, 2 * power + 1, 2)]
    return slopes + between[: num_heads - power]


def _rates(num: int, device: torch.device) -> Tensor:
    """Return the angles per position of `num` frequencies, from 1 down to nearly 1/10000."""
    return 10_000 ** (-torch.arange(num, device=device) / num)


POSITIONS: dict[str, type[Positions]] = {
    "none": Positions,
    "sinusoidal": SinusoidalPositions,
    "sinusoidal_halves": HalvedSinusoidalPositions,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "shaw": ShawPositions,
    "t5": BucketPositions,
    "alibi": AlibiPositions,
}


if __name__ == "__main__":
    print("sinusoidal, 4 positions x 6 columns:", sinusoids(torch.arange(4), 6), sep="\n")
    print("ALiBi slopes of 8 heads:", alibi_slopes(8))
