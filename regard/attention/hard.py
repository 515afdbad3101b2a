"""Hard attention: one place is chosen and nothing else is seen.

A choice has no gradient. It is learned from what came of it: the log-probability of the choice is
returned beside the context, to be weighted by a reward (REINFORCE, Williams 1992).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.attend import mix, weigh
from regard.attention.scores import DotScore, Score
from regard.attention.spans import GlobalAttention, Prepared


class Choice(NamedTuple):
    """What a hard attention says; the weights come second, as with every attention."""

    context: Tensor
    """(B, Q, D), what is seen there."""
    weights: Tensor
    """(B, Q, S), 1 at the chosen place; where nothing is chosen, the probabilities themselves."""
    log_probs: Tensor
    """(B, Q), how likely the choice was, as a logarithm; 0 where nothing is chosen."""
    entropies: Tensor
    """(B, Q), how open the choice was."""


class HardAttention(GlobalAttention):
    """Sees one place, drawn in training and the likeliest in evaluation.

    Xu et al. 2015, section 4.1. In training some hypotheses see the expected context instead, as
    in soft attention, which makes the gradient steadier (the paper does so with probability 0.5).
    Whether one does is its place, drawn once and kept. Who knows nothing yet chooses blindly, and
    learns little from it: all hypotheses may begin softly.

    Args:
        score: How well a query fits a key.
        soft_share: Probability that a hypothesis sees the expected context in training.
        soft_steps: Training batches over which that probability falls from 1 to `soft_share`.
    """

    num_begun: Tensor

    def __init__(self, score: Score, *, soft_share: float = 0.5, soft_steps: int = 0) -> None:
        super().__init__(score)
        self.soft_share = soft_share
        self.soft_steps = soft_steps
        # Who does not count them needs no count among its weights.
        self.register_buffer("num_begun", torch.tensor(0), persistent=soft_steps > 0)

    def begin(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Return which hypotheses see what is expected, (B·W,)."""
        mask = prepared["mask"]
        share = self._next_share() if self.training else 0.0
        return torch.rand(len(mask) * beams, device=mask.device) < share

    def _next_share(self) -> Tensor:
        """Return the share of the next training batch that sees what is expected."""
        left = (self.soft_steps - self.num_begun).clamp(min=0) / max(self.soft_steps, 1)
        self.num_begun += 1
        return self.soft_share + (1 - self.soft_share) * left

    def advance(self, place: Tensor, weights: Tensor) -> Tensor:
        """Return which hypotheses see what is expected: the same."""
        return place

    def forward(  # type: ignore[override]  # a pair, and what is to be learned from
        self, queries: Tensor, prepared: Prepared, places: Tensor
    ) -> Choice:
        """Answer every query from one place.

        Args:
            queries: (B, Q, D).
            prepared: What `prepare` returned.
            places: (B, Q), True = sees what is expected.
        """
        probs = weigh(self.score(queries, prepared["keys"]), prepared["mask"][:, None])  # (B, Q, S)
        # Never log 0: its gradient would not be a number.
        logs = probs.clamp(min=torch.finfo(probs.dtype).tiny).log()
        chosen = self.choose(probs)[..., None]  # (B, Q, 1)
        weights = torch.zeros_like(probs).scatter(-1, chosen, 1.0)
        weights = torch.where(places[..., None], probs, weights)
        log_probs = logs.gather(-1, chosen)[..., 0].masked_fill(places, 0.0)  # (B, Q)
        entropies = -(probs * logs).sum(-1)
        return Choice(mix(weights, prepared["values"]), weights, log_probs, entropies)

    def choose(self, probs: Tensor) -> Tensor:
        """Choose a place for every row of probabilities (B, Q, S): (B, Q)."""
        if self.training:
            # The first of several clocks that run at these rates is each with its probability.
            probs = probs / torch.empty_like(probs).exponential_()
        return probs.argmax(-1)


if __name__ == "__main__":
    torch.manual_seed(0)
    attention = HardAttention(DotScore(2, 2), soft_share=0.0)
    states = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]])
    prepared = attention.prepare(states, torch.ones(1, 3).bool())
    queries = torch.tensor([[[1.0, 0.5]]]).expand(1, 1000, 2)
    choice = attention(queries, prepared, attention.begin(prepared)[:, None].expand(1, 1000))
    print("drawn ", *(f"{share:.2f}" for share in choice.weights[0].mean(0)))
    print("likely", *(f"{share:.2f}" for share in weigh(queries[0, :1] @ states[0].T)[0]))
