"""How well a query fits a key: the score functions, all with one signature.

Each has two halves: `prepare(keys)` does once per sentence what does not depend on the query,
and `forward(queries, prepared)` scores every query against every key. The table of Luong et al.
2015, section 3.1, and the additive score of Bahdanau et al. 2015, appendix A.1.2.
"""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention.attend import scaled_dot
from regard.core.errors import ConfigError
from regard.core.module import Linear, Module

ScoreKind = Literal[
    "dot", "scaled_dot", "general", "additive", "concat", "location", "cosine", "gaussian"
]


class Score(Module, ABC):
    """What every score function offers.

    Args:
        query_dim: Width of the queries.
        key_dim: Width of the keys.
        dim: Width of the hidden layer, where there is one.
        max_source: Most keys that can be scored, where the function must know.
    """

    def __init__(self, query_dim: int, key_dim: int, *, dim: int = 0, max_source: int = 0) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.dim = dim or key_dim
        self.max_source = max_source
        self.build()

    def build(self) -> None:
        """Check the widths and build what is learned, if anything is."""

    def prepare(self, keys: Tensor) -> Tensor:
        """Do once per sentence what does not depend on the query.

        Args:
            keys: (..., K, D).

        Returns:
            What `forward` takes as `prepared`, (..., K, any width).
        """
        return keys

    @abstractmethod
    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score every query against every key.

        Args:
            queries: (..., Q, D).
            prepared: What `prepare` made of the keys.

        Returns:
            (..., Q, K).
        """


class DotScore(Score):
    """q · k; nothing to learn, so both must have one width."""

    def build(self) -> None:
        """Check the widths and build what is learned."""
        if self.query_dim != self.key_dim:
            raise ConfigError(
                f"This `score` needs queries and keys of one width, but they are {self.query_dim} "
                f"and {self.key_dim} wide. Use 'general', which learns a map between them."
            )

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score every query against every key, (..., Q, K)."""
        return queries @ prepared.transpose(-2, -1)


class ScaledDotScore(DotScore):
    """q · k / √d, as in a transformer."""

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score every query against every key, (..., Q, K)."""
        return scaled_dot(queries, prepared)


class GeneralScore(DotScore):
    """q · W k: a bilinear form."""

    def build(self) -> None:
        """Check the widths and build what is learned."""
        self.key_map = Linear(self.key_dim, self.query_dim, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """Map the keys to the queries' width, once per sentence."""
        return self.key_map(keys)


class AdditiveScore(Score):
    """v · tanh(W q + U k) (Bahdanau et al. 2015): a small network looks at both."""

    def build(self) -> None:
        """Check the widths and build what is learned."""
        self.query_map = Linear(self.query_dim, self.dim, bias=False)
        self.key_map = Linear(self.key_dim, self.dim)
        self.weight = Linear(self.dim, 1, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """Compute U k, once per sentence."""
        return self.key_map(keys)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score every query against every key, (..., Q, K)."""
        hidden = self.query_map(queries)[..., :, None, :] + prepared[..., None, :, :]
        return self.weight(hidden.tanh()).squeeze(-1)  # (..., Q, K)


class ConcatScore(Score):
    """v · tanh(W [q; k]) (Luong et al. 2015): additive, with one matrix over both.

    The matrix is applied to the two halves apart, so that the keys' half is done once.
    """

    def build(self) -> None:
        """Check the widths and build what is learned."""
        self.joint_map = Linear(self.query_dim + self.key_dim, self.dim, bias=False)
        self.weight = Linear(self.dim, 1, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """Apply the keys' half of W, once per sentence."""
        return nn.functional.linear(keys, self.joint_map.weight[:, self.query_dim :])

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score every query against every key, (..., Q, K)."""
        mapped = nn.functional.linear(queries, self.joint_map.weight[:, : self.query_dim])
        hidden = mapped[..., :, None, :] + prepared[..., None, :, :]
        return self.weight(hidden.tanh()).squeeze(-1)  # (..., Q, K)


class LocationScore(Score):
    """W q, one number a source position: it never looks at the keys (Luong et al. 2015, eq. 8)."""

    def build(self) -> None:
        """Check the widths and build what is learned."""
        if self.max_source < 1:
            raise ConfigError(
                f"`score` 'location' needs `max_source`, the longest source there will be, "
                f"but it is {self.max_source}."
            )
        self.position_map = Linear(self.query_dim, self.max_source, bias=False)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score every query against every key, (..., Q, K)."""
        num_keys = prepared.shape[-2]
        if num_keys > self.max_source:
            raise ConfigError(
                f"`max_source` must be at least the length of the source ({num_keys}) with the "
                f"'location' score, but is {self.max_source}. Train with a larger one or "
                "shorten the source."
            )
        return self.position_map(queries)[..., :num_keys]  # (..., Q, K)


class CosineScore(DotScore):
    """The cosine of the angle between q and k: how long they are does not matter."""

    def prepare(self, keys: Tensor) -> Tensor:
        """Bring every key to length one, once per sentence."""
        return nn.functional.normalize(keys, dim=-1)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score every query against every key, (..., Q, K)."""
        return super().forward(nn.functional.normalize(queries, dim=-1), prepared)


class GaussianScore(DotScore):
    """-|w (q - k)|² / 2: the nearer, the better; the softmax of it is a Gaussian kernel.

    With w = 1 this is the kernel of Nadaraya and Watson; a larger w looks more closely.
    """

    def build(self) -> None:
        """Check the widths and build what is learned."""
        super().build()
        self.sharpness = nn.Parameter(torch.ones(()))

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score every query against every key, (..., Q, K)."""
        # |q - k|² = |q|² - 2 q·k + |k|², so that no (..., Q, K, D) tensor is needed.
        lengths = queries.square().sum(-1)[..., None] + prepared.square().sum(-1)[..., None, :]
        distance = lengths - 2 * super().forward(queries, prepared)
        return -self.sharpness.square() * distance / 2


SCORES: dict[str, type[Score]] = {
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
    "general": GeneralScore,
    "additive": AdditiveScore,
    "concat": ConcatScore,
    "location": LocationScore,
    "cosine": CosineScore,
    "gaussian": GaussianScore,
}


if __name__ == "__main__":
    torch.manual_seed(0)
    keys, query = torch.randn(4, 8), torch.randn(1, 8)
    for name, kind in SCORES.items():
        score = kind(8, 8, max_source=4)
        print(f"{name:>10}", score(query, score.prepare(keys)).detach())
