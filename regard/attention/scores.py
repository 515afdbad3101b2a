"""Score functions of queries and keys, all with one signature.

`prepare(keys)` computes once per sentence what does not depend on the query, and
`forward(queries, prepared)` scores each query against each key. The functions are those of Luong et
al. 2015, section 3.1, the additive score of Bahdanau et al. 2015, appendix A.1.2, and others.
"""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention.attend import scaled_dot
from regard.core.errors import ConfigError
from regard.core.module import Linear, Module
from regard.core.native.linear import linear

ScoreKind = Literal[
    "dot", "scaled_dot", "general", "additive", "concat", "location", "cosine", "gaussian"
]


class Score(Module, ABC):
    """Base class of score functions.

    Args:
        query_dim: Width of the queries.
        key_dim: Width of the keys.
        dim: Width of the hidden layer, if there is one; 0 = `key_dim`.
        max_source: Maximum number of keys, for the location score.
    """

    def __init__(self, query_dim: int, key_dim: int, *, dim: int = 0, max_source: int = 0) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.key_dim = key_dim
        self.dim = dim or key_dim
        self.max_source = max_source
        self.build()

    def build(self) -> None:
        """Check the widths and build the parameters, if there are any."""

    def prepare(self, keys: Tensor) -> Tensor:
        """Compute what does not depend on the query, once per sentence.

        Args:
            keys: (..., K, D).

        Returns:
            The argument `prepared` of `forward`, (..., K, any width).
        """
        return keys

    @abstractmethod
    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key.

        Args:
            queries: (..., Q, D).
            prepared: Output of `prepare`.

        Returns:
            (..., Q, K).
        """


class DotScore(Score):
    """Dot product q · k, without parameters. Queries and keys must have the same width."""

    def build(self) -> None:
        """Check the widths and build the parameters."""
        if self.query_dim != self.key_dim:
            raise ConfigError(
                "This `score` needs queries and keys of equal width, but they are "
                f"{self.query_dim} and {self.key_dim} wide. Use 'general', which learns a map "
                "between them."
            )

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key, (..., Q, K)."""
        return queries @ prepared.transpose(-2, -1)


class ScaledDotScore(DotScore):
    """Scaled dot product q · k / √d, as in a transformer."""

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key, (..., Q, K)."""
        return scaled_dot(queries, prepared)


class GeneralScore(DotScore):
    """Bilinear score q · W k."""

    def build(self) -> None:
        """Check the widths and build the parameters."""
        self.key_map = Linear(self.key_dim, self.query_dim, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """Project the keys to the width of the queries, once per sentence."""
        return self.key_map(keys)


class AdditiveScore(Score):
    """Additive score v · tanh(W q + U k) (Bahdanau et al. 2015)."""

    def build(self) -> None:
        """Check the widths and build the parameters."""
        self.query_map = Linear(self.query_dim, self.dim, bias=False)
        self.key_map = Linear(self.key_dim, self.dim)
        self.weight = Linear(self.dim, 1, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """Compute U k, once per sentence."""
        return self.key_map(keys)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key, (..., Q, K)."""
        hidden = self.query_map(queries)[..., :, None, :] + prepared[..., None, :, :]
        return self.weight(hidden.tanh()).squeeze(-1)  # (..., Q, K)


class ConcatScore(Score):
    """Concat score v · tanh(W [q; k]) (Luong et al. 2015): additive, with one joint matrix.

    The matrix is applied to queries and keys separately, so keys are projected once per sentence.
    """

    def build(self) -> None:
        """Check the widths and build the parameters."""
        self.joint_map = Linear(self.query_dim + self.key_dim, self.dim, bias=False)
        self.weight = Linear(self.dim, 1, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """Apply the columns of W that belong to the keys, once per sentence."""
        return linear(keys, self.joint_map.weight[:, self.query_dim :])

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key, (..., Q, K)."""
        mapped = linear(queries, self.joint_map.weight[:, : self.query_dim])
        hidden = mapped[..., :, None, :] + prepared[..., None, :, :]
        return self.weight(hidden.tanh()).squeeze(-1)  # (..., Q, K)


class LocationScore(Score):
    """Location score W q, which depends on the query only (Luong et al. 2015, eq. 8)."""

    def build(self) -> None:
        """Check the widths and build the parameters."""
        if self.max_source < 1:
            raise ConfigError(
                f"`score` 'location' needs `max_source`, the longest source there will be, "
                f"but it is {self.max_source}."
            )
        self.position_map = Linear(self.query_dim, self.max_source, bias=False)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key, (..., Q, K)."""
        num_keys = prepared.shape[-2]
        if num_keys > self.max_source:
            raise ConfigError(
                f"`max_source` must be at least the length of the source ({num_keys}) with the "
                f"'location' score, but is {self.max_source}. Train with a larger one or "
                "shorten the source."
            )
        return self.position_map(queries)[..., :num_keys]  # (..., Q, K)


class CosineScore(DotScore):
    """Cosine similarity of q and k."""

    def prepare(self, keys: Tensor) -> Tensor:
        """Normalise the keys to unit length, once per sentence."""
        return nn.functional.normalize(keys, dim=-1)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key, (..., Q, K)."""
        return super().forward(nn.functional.normalize(queries, dim=-1), prepared)


class GaussianScore(DotScore):
    """Gaussian score -|w (q - k)|² / 2, whose softmax is a Gaussian kernel.

    With w = 1 it is the kernel of Nadaraya–Watson regression. A larger w gives a narrower kernel.
    """

    def build(self) -> None:
        """Check the widths and build the parameters."""
        super().build()
        self.sharpness = nn.Parameter(torch.ones(()))

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key, (..., Q, K)."""
        # |q - k|² = |q|² - 2 q·k + |k|² avoids a (..., Q, K, D) tensor.
        squares = queries.square().sum(-1)[..., None] + prepared.square().sum(-1)[..., None, :]
        distance = squares - 2 * super().forward(queries, prepared)
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
