"""What a model answers, and where it looked."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.record import Maps

COPYING = "copying"
"""What a map's weights are where tokens are copied: a row sums to the chance that its own is."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer to one source."""

    text: str
    """The answer as text."""
    log_prob: float
    """Its log-probability."""
    tokens: tuple[str, ...]
    """Its pieces as the model wrote them, the end token included."""
    token_log_probs: tuple[float, ...]
    """The log-probability of each piece."""


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """Where the model looked while it wrote a given target."""

    source: tuple[str, ...]
    """The pieces that were looked at."""
    target: tuple[str, ...]
    """The pieces that looked."""
    weights: Tensor
    """(N, H, T, S), on the host."""
    kind: str = "attention"
    """What the weights are: attention, or what stands in for it where a model has none."""
    grid: tuple[int, int] | None = None
    """Rows and columns of an image, whose cells are the source's pieces, row by row."""
    image: NDArray[np.uint8] | None = None
    """(Y, X, C), the image that was looked at."""

    @classmethod
    def within(cls, text: tuple[str, ...], recorded: Maps) -> "AttentionMap":
        """Return where the pieces of one text looked at each other; no layers where none could."""
        weights = torch.zeros(0, 1, len(text), len(text))
        if recorded.num_layers:
            weights = recorded.stack_self()[0].cpu().float()
        return cls(source=text, target=text, weights=weights)

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """Target and source pieces as people read them, without the mark of a word's start.

        Where tokens are copied, each of the target's has the probability of it beside it.
        """
        rows, columns = ([_label(piece) for piece in side] for side in (self.target, self.source))
        if self.kind == COPYING:
            shares = self.mean().sum(-1).tolist()
            rows = [f"{row} {share:.2f}" for row, share in zip(rows, shares, strict=True)]
        return rows, columns

    def mean(self) -> Tensor:
        """Average layers and heads: (T, S)."""
        return self.weights.mean((0, 1))  # (T, S)


def _label(piece: str) -> str:
    return piece.removeprefix("▁") or piece
