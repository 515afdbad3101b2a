"""Attention pooling: many values become one, weighted by how well their keys fit a query.

Average pooling, the regression of Nadaraya (1964) and Watson (1964), and the attention of a
decoder are one formula: f(x) = Σ α(x, x_i) y_i.
"""

import torch
from torch import Tensor

from regard.attention.attend import Attention, mix, weigh
from regard.attention.scores import GaussianScore, Score
from regard.core.module import Module


def average_pool(values: Tensor, mask: Tensor) -> Tensor:
    """Give every real position the same weight: (B, L, D) → (B, D)."""
    weights = weigh(torch.zeros_like(mask, dtype=values.dtype)[:, None], mask[:, None])
    return mix(weights, values)[:, 0]  # (B, D)


def max_pool(values: Tensor, mask: Tensor) -> Tensor:
    """Take the largest value over the real positions: (B, L, D) → (B, D)."""
    lowest = torch.finfo(values.dtype).min
    return values.masked_fill(~mask[..., None], lowest).amax(1)  # (B, D)


class AttentionPooling(Attention):
    """Answers a query with the values whose keys fit it, by any score function."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Pool the values once a query.

        Args:
            queries: (..., Q, D).
            keys: (..., K, D).
            values: (..., K, D).
            mask: (..., Q, K) or broadcastable, bool, True = may attend.

        Returns:
            The pooled values (..., Q, D) and the weights (..., Q, K).
        """
        weights = weigh(self.score(queries, self.score.prepare(keys)), mask)
        return mix(weights, values), weights


class KernelRegression(Module):
    """Nadaraya–Watson regression: y(x) = Σ softmax(-(w (x - x_i))² / 2) y_i.

    With w = 1 fixed it is non-parametric; learned, w is how closely it looks.
    """

    def __init__(self, *, is_learned: bool) -> None:
        super().__init__()
        score = GaussianScore(1, 1)
        score.sharpness.requires_grad_(is_learned)
        self.pooling = AttentionPooling(score)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Predict y at each query.

        Args:
            queries: (Q,), where to predict.
            keys: (K,), the x seen.
            values: (K,), the y seen.
            mask: (Q, K), bool, True = may attend; in training a point must not see itself.

        Returns:
            The predictions (Q,) and the weights (Q, K).
        """
        pooled, weights = self.pooling(queries[:, None], keys[:, None], values[:, None], mask=mask)
        return pooled[:, 0], weights


if __name__ == "__main__":
    x = torch.linspace(0, 4, 5)
    _, kernel = KernelRegression(is_learned=False)(x, x, 2 * x.sin() + x**0.8)
    print("weights of equal queries and keys:", kernel.detach(), sep="\n")
