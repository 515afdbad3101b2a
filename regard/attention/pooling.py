"""Attention pooling: the sum of values weighted by the scores of a query and their keys.

Average pooling, kernel regression (Nadaraya 1964; Watson 1964) and attention share one formula:
f(x) = Σ α(x, x_i) y_i.
"""

import torch
from torch import Tensor

from regard.attention.attend import Attention, masked_softmax, weighted_sum
from regard.attention.scores import GaussianScore, Score
from regard.core.module import Module


def average_pool(values: Tensor, mask: Tensor) -> Tensor:
    """Average over the real positions: (B, L, D) → (B, D)."""
    weights = masked_softmax(torch.zeros_like(mask, dtype=values.dtype)[:, None], mask[:, None])
    return weighted_sum(weights, values)[:, 0]  # (B, D)


def max_pool(values: Tensor, mask: Tensor) -> Tensor:
    """Take the maximum over the real positions: (B, L, D) → (B, D)."""
    lowest = torch.finfo(values.dtype).min
    return values.masked_fill(~mask[..., None], lowest).amax(1)  # (B, D)


class AttentionPooling(Attention):
    """Attention pooling with any score function."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Pool the values for each query.

        Args:
            queries: (..., Q, D).
            keys: (..., K, D).
            values: (..., K, D).
            mask: (..., Q, K) or broadcastable, bool, True = may attend.

        Returns:
            The pooled values (..., Q, D) and the weights (..., Q, K).
        """
        weights = masked_softmax(self.score(queries, self.score.prepare(keys)), mask)
        return weighted_sum(weights, values), weights


class KernelRegression(Module):
    """Nadaraya–Watson regression: y(x) = Σ softmax(-(w (x - x_i))² / 2) y_i.

    With w = 1 fixed it is non-parametric. A learned w is the inverse bandwidth of the kernel.
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
            queries: (Q,), the x to predict at.
            keys: (K,), the x of the training points.
            values: (K,), the y of the training points.
            mask: (Q, K), bool, True = may attend. In training, mask each point itself.

        Returns:
            The predictions (Q,) and the weights (Q, K).
        """
        pooled, weights = self.pooling(queries[:, None], keys[:, None], values[:, None], mask=mask)
        return pooled[:, 0], weights


if __name__ == "__main__":
    x = torch.linspace(0, 4, 5)
    _, weights = KernelRegression(is_learned=False)(x, x, 2 * x.sin() + x**0.8)
    print("weights of equal queries and keys:", weights.detach(), sep="\n")
