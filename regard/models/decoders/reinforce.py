"""How much better than expected it went after each choice."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn


class Advantage(nn.Module):
    """Judges a choice by what was said from then on, beside what is usual for those words.

    A reward that a choice had no part in is noise to it. Three means take noise away and leave the
    expected gradient as it is, since none knows the choice: words said before it do not count; the
    moving average that is taken away (Xu et al. 2015, section 4.1) is kept for each word, as some
    words are always hard to foretell; and all is divided by the moving deviation where that is
    above 1 (as Mnih and Gregor 2014 do), which changes its size alone.

    Args:
        vocab_size: Number of words.
    """

    DECAY = 0.9
    """How much of a moving average is kept at each step."""
    usual: Tensor
    variance: Tensor

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        # Who has learned nothing holds all words for equally likely.
        self.register_buffer("usual", torch.full((vocab_size,), -math.log(vocab_size)))
        self.register_buffer("variance", torch.ones(()))

    @torch.no_grad()
    def forward(self, told: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Return how much better than usual it went from each position on, (B, T).

        Args:
            told: (B, T), log-probabilities of the true tokens.
            labels: (B, T), the true tokens.
            mask: (B, T), True = said after a choice.
        """
        told = told.to(self.usual.dtype)
        above = (told - self.usual[labels]).masked_fill(~mask, 0.0)
        from_here = above.flip(1).cumsum(1).flip(1).masked_fill(~mask, 0.0)  # (B, T)
        scaled = from_here / self.variance.sqrt().clamp(min=1.0)
        self._expect(told[mask], labels[mask])
        self._spread(from_here[mask])
        return scaled

    if TYPE_CHECKING:
        __call__ = forward

    def _expect(self, told: Tensor, labels: Tensor) -> None:
        """Move what is usual for each word towards its mean in this batch, (N,)."""
        sums, counts = (torch.zeros_like(self.usual) for _ in range(2))
        sums.index_add_(0, labels, told)
        counts.index_add_(0, labels, torch.ones_like(told))
        moved = torch.lerp(sums / counts.clamp(min=1.0), self.usual, self.DECAY)
        self.usual.copy_(torch.where(counts > 0, moved, self.usual))

    def _spread(self, advantages: Tensor) -> None:
        """Move the variance towards that of this batch, (N,), if anything was chosen in it."""
        found = advantages.square().sum() / max(len(advantages), 1)
        moved = torch.lerp(found, self.variance, self.DECAY)
        self.variance.copy_(moved if len(advantages) else self.variance)
