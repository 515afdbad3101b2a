"""Position encodings: absolute, rotary and relative.

All have one signature, and each overrides the methods it needs: the output of `embed` is added to
the embeddings, `rotate` rotates queries and keys, the output of `bias` is added to the scores.
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


TABLE_LENGTH = 1024
"""Maximum number of positions whose embeddings are stored for inference."""


class Positions(Module):
    """Base class of position encodings. By itself it encodes no positions.

    Args:
        dim: Width of the model.
        num_heads: Number of query heads.
        max_length: Maximum number of positions, for encodings that need a limit.
        is_causal: Whether queries attend to earlier positions only, so distances have one sign.
    """

    _table: Tensor | None = None
    """(L, D), the embeddings of the first positions, in models for inference."""

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
        """Build the learned vectors, or return None if there are none."""
        return None

    def embed(self, positions: Tensor) -> Tensor | None:
        """Return the position embeddings (L, D) of `positions` (L,), or None."""
        return None

    def embed_range(self, first: int, end: int, device: torch.device) -> Tensor | None:
        """Return the embeddings of the positions from `first` to `end`, exclusive, (L, D)."""
        if self._table is not None and end <= len(self._table):
            return self._table[first:end]
        return self.embed(torch.arange(first, end, device=device))

    def tabulate(self, like: Tensor) -> None:
        """Store the embeddings of the first positions, for inference.

        Args:
            like: A tensor of their device and dtype.
        """
        num = min(self.max_length or TABLE_LENGTH, TABLE_LENGTH)
        table = self.embed(torch.arange(num, device=like.device))
        self._table = None if table is None else table.to(like.dtype)

    def check_length(self, length: int) -> None:
        """Raise `ConfigError` if there is a limit and a text of `length` tokens exceeds it."""

    def rotate(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Rotate queries or keys (B, H, L, E) by their `positions` (L,)."""
        return vectors

    def bias(
        self, queries: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor | None:
        """Return the bias of the scaled scores: (B, H, Q, K) or broadcastable, or None.

        Args:
            queries: (B, H, Q, E).
            query_positions: (Q,).
            key_positions: (K,).
        """
        return None


class SinusoidalPositions(Positions):
    """Absolute sinusoidal position embeddings (Vaswani et al. 2017, section 3.5)."""

    def embed(self, positions: Tensor) -> Tensor:
        """Return sin in the even and cos in the odd columns, (L, D)."""
        return sinusoids(positions, self.dim)


class HalvedSinusoidalPositions(Positions):
    """Sinusoidal position embeddings in the column order of Marian."""

    def embed(self, positions: Tensor) -> Tensor:
        """Return all sines in the first half of the columns and all cosines after them, (L, D)."""
        table = sinusoids(positions, self.dim)
        return torch.cat([table[:, 0::2], table[:, 1::2]], dim=-1)  # (L, D)


class GridPositions(Positions):
    """2D sinusoidal position embeddings: one half encodes the row, the other the column.

    Dosovitskiy et al. 2021, appendix D.4; fixed positions as in Chen et al. 2021 and He et al.
    2022. Cells are counted row by row. Positions before the first cell get zeros.

    Args:
        dim: Width of the model.
        num_heads: Number of query heads.
        num_columns: Number of columns of the grid.
        num_before: Number of positions before the first cell, such as a class token.
    """

    def __init__(self, *, dim: int, num_heads: int, num_columns: int, num_before: int = 0) -> None:
        super().__init__(dim=dim, num_heads=num_heads)
        self.num_columns = num_columns
        self.num_before = num_before

    def embed(self, positions: Tensor) -> Tensor:
        """Return the embeddings of row and column, (L, D)."""
        cells = positions - self.num_before
        rows, columns = cells // self.num_columns, cells % self.num_columns
        half = self.dim // 2
        embedded = torch.cat([sinusoids(rows, half), sinusoids(columns, self.dim - half)], dim=-1)
        return embedded.masked_fill(cells[:, None] < 0, 0.0)  # (L, D)


class LearnedPositions(Positions):
    """Learned absolute position embeddings, up to a maximum length."""

    embedding: Embedding

    def build_embedding(self) -> Embedding:
        """Build one vector per position."""
        return _build_embedding(self.max_length, self.dim, std=self.dim**-0.5)

    def embed(self, positions: Tensor) -> Tensor:
        """Return the position embeddings, (L, D)."""
        return self.embedding(positions)

    def check_length(self, length: int) -> None:
        """Raise `ConfigError` if a text has more positions than there are embeddings."""
        if length > self.max_length:
            raise ConfigError(
                f"`max_length` must be at least the length of the text ({length} tokens) with "
                f"learned positions, but is {self.max_length}. Shorten the text, or train with a "
                "larger one."
            )


class RotaryPositions(Positions):
    """Rotary position embeddings (RoPE, Su et al. 2021).

    Each pair of columns is rotated by an angle proportional to the position, so the dot product of
    a query and a key depends on their distance only.
    """

    def rotate(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Rotate queries or keys (B, H, L, E). Column i is paired with column i + E/2."""
        half = vectors.shape[-1] // 2
        cos, sin = (table.to(vectors.dtype) for table in self.rotations(positions))
        first, second = vectors[..., :half], vectors[..., half : 2 * half]
        rotated = [first * cos - second * sin, second * cos + first * sin]
        return torch.cat([*rotated, vectors[..., 2 * half :]], dim=-1)

    def rotations(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of the angles, one row per position, one column per pair."""
        angles = positions[:, None] * _frequencies(self.head_dim // 2, positions.device)
        return angles.cos(), angles.sin()


class ShawPositions(Positions):
    """Relative position embeddings of Shaw et al. 2018, eq. 4: one learned vector per distance.

    Distances beyond `MAX_DISTANCE` share the last vector. The embeddings that the paper adds to the
    values are omitted, since the paper finds that they do not improve the results.
    """

    MAX_DISTANCE = 16

    embedding: Embedding

    def build_embedding(self) -> Embedding:
        """Build one vector per distance."""
        return _build_embedding(2 * self.MAX_DISTANCE + 1, self.head_dim, std=self.head_dim**-0.5)

    def bias(self, queries: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return q · a_ij / √E, (B, H, Q, K)."""
        distance = key_positions - query_positions[:, None]  # (Q, K)
        index = distance.clamp(-self.MAX_DISTANCE, self.MAX_DISTANCE) + self.MAX_DISTANCE
        # Score each query against all distances, then gather the distance of each key.
        scores = queries @ self.embedding.weight.to(queries.dtype).T  # (B, H, Q, any width)
        gathered = scores.gather(-1, index.expand(*scores.shape[:2], -1, -1))
        return gathered / math.sqrt(self.head_dim)  # (B, H, Q, K)


class BucketPositions(Positions):
    """Relative position biases of T5 (Raffel et al. 2020): one learned scalar per head and bucket.

    Each short distance has its own bucket; the buckets of long distances widen logarithmically.
    """

    NUM_BUCKETS = 32
    MAX_DISTANCE = 128

    embedding: Embedding

    def build_embedding(self) -> Embedding:
        """Build one scalar per head and bucket."""
        return _build_embedding(self.NUM_BUCKETS, self.num_heads, std=self.dim**-0.5)

    def bias(self, queries: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return the bias of each head and distance, (1, H, Q, K)."""
        buckets = self.bucket(key_positions - query_positions[:, None])  # (Q, K)
        return self.embedding(buckets).permute(2, 0, 1)[None]  # (1, H, Q, K)

    def bucket(self, distance: Tensor) -> Tensor:
        """Return the bucket of each distance (key position minus query position)."""
        num_buckets, offset = self.NUM_BUCKETS, torch.zeros_like(distance)
        if self.is_causal:
            size = (-distance).clamp(min=0)
        else:
            num_buckets //= 2
            offset = (distance > 0) * num_buckets
            size = distance.abs()
        num_exact = num_buckets // 2
        logarithmic = num_exact + (
            torch.log(size.clamp(min=1) / num_exact)
            / math.log(self.MAX_DISTANCE / num_exact)
            * (num_buckets - num_exact)
        ).long().clamp(max=num_buckets - num_exact - 1)
        return offset + torch.where(size < num_exact, size, logarithmic)


class AlibiPositions(Positions):
    """ALiBi: a bias linear in the distance, with one slope per head (Press et al. 2022)."""

    def bias(self, queries: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return -slope · distance, (1, H, Q, K)."""
        slopes = torch.tensor(alibi_slopes(self.num_heads), device=queries.device)
        distance = (key_positions - query_positions[:, None]).abs()  # (Q, K)
        return -(slopes[:, None, None] * distance)[None]  # (1, H, Q, K)


def _build_embedding(num: int, dim: int, *, std: float) -> Embedding:
    embedding = Embedding(num, dim)
    nn.init.normal_(embedding.weight, 0.0, std)
    return embedding


def sinusoids(positions: Tensor, dim: int) -> Tensor:
    """Return sin(position / 10000^(2i/D)) in column 2i and its cosine in column 2i + 1, (L, D)."""
    angles = positions[:, None] * _frequencies((dim + 1) // 2, positions.device)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim]  # (L, D)


def alibi_slopes(num_heads: int) -> list[float]:
    """Return the ALiBi slopes 2^(-8h/H), h = 1 … H; if H is no power of two, as in the paper."""
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2 ** (-8 * head / (2 * power)) for head in range(1, 2 * power + 1, 2)]
    return slopes + between[: num_heads - power]


def _frequencies(num: int, device: torch.device) -> Tensor:
    """Return `num` frequencies, from 1 down to almost 1/10000."""
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
