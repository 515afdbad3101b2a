"""Hard attention: one position is sampled, and the context is its value alone.

Sampling has no gradient. It is learned by reward: the log-probability of the sampled position is
returned beside the context, to be weighted by the reward (REINFORCE, Williams 1992).
"""

import torch
from torch import Tensor

from regard.attention.attend import mix, weigh
from regard.attention.scores import DotScore, Score
from regard.attention.spans import Attended, GlobalAttention, Prepared, Sample


class HardAttention(GlobalAttention):
    """Attends to one position, sampled in training and the likeliest in evaluation.

    Xu et al. 2015, section 4.1. In training some hypotheses get the expected context instead, as
    in soft attention, which makes the gradient steadier (the paper does so with probability 0.5).
    Which ones is drawn at the start and remembered. An untrained model samples blindly and learns
    little from it: all hypotheses may begin softly.

    Args:
        score: How well a query fits a key.
        soft_share: Probability that a hypothesis gets the expected context in training.
        soft_steps: Training batches over which that probability falls from 1 to `soft_share`.
    """

    num_begun: Tensor

    def __init__(self, score: Score, *, soft_share: float = 0.5, soft_steps: int = 0) -> None:
        super().__init__(score)
        self.soft_share = soft_share
        self.soft_steps = soft_steps
        # Without an annealing there is nothing to save.
        self.register_buffer("num_begun", torch.tensor(0), persistent=soft_steps > 0)

    def start(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Return which hypotheses get the expected context, (B·W,)."""
        mask = prepared["mask"]
        share = self._next_share() if self.training else 0.0
        return torch.rand(len(mask) * beams, device=mask.device) < share

    def _next_share(self) -> Tensor:
        """Return the share of the next training batch that gets the expected context."""
        left = (self.soft_steps - self.num_begun).clamp(min=0) / max(self.soft_steps, 1)
        self.num_begun += 1
        return self.soft_share + (1 - self.soft_share) * left

    def advance(self, is_soft: Tensor, weights: Tensor) -> Tensor:
        """Return which hypotheses get the expected context: the same."""
        return is_soft

    def forward(self, queries: Tensor, prepared: Prepared, is_soft: Tensor) -> Attended:
        """Attend from every query to one position; the weights are 1 there.

        Args:
            queries: (B, Q, D).
            prepared: What `prepare` returned.
            is_soft: (B, Q), True = gets the expected context, with the probabilities as weights.
        """
        probs = weigh(self.score(queries, prepared["keys"]), prepared["mask"][:, None])  # (B, Q, S)
        # Never log 0: its gradient would not be a number.
        logs = probs.clamp(min=torch.finfo(probs.dtype).tiny).log()
        sampled = self.sample(probs)[..., None]  # (B, Q, 1)
        weights = torch.zeros_like(probs).scatter(-1, sampled, 1.0)
        weights = torch.where(is_soft[..., None], probs, weights)
        log_probs = logs.gather(-1, sampled)[..., 0].masked_fill(is_soft, 0.0)  # (B, Q)
        entropies = -(probs * logs).sum(-1)
        return Attended(mix(weights, prepared["values"]), weights, Sample(log_probs, entropies))

    def sample(self, probs: Tensor) -> Tensor:
        """Sample a position for every row of probabilities (B, Q, S): (B, Q)."""
        if self.training:
            # The first of several clocks that run at these rates is each with its probability.
            probs = probs / torch.empty_like(probs).exponential_()
        return probs.argmax(-1)


if __name__ == "__main__":
    torch.manual_seed(0)
    attention = HardAttention(DotScore(2, 2), soft_share=0.0)
    states = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]])
    source = attention.prepare(states, torch.ones(1, 3).bool())
    queries = torch.tensor([[[1.0, 0.5]]]).expand(1, 1000, 2)
    attended = attention(queries, source, torch.zeros(1, 1000).bool())
    print("share of the samples:", attended.weights[0].mean(0))
