"""Hard attention: the context is the value of one sampled position.

Sampling has no gradient, so it is trained with REINFORCE (Williams 1992): the module also returns
the log-probability of the sampled position, which the loss weights by the reward.
"""

import torch
from torch import Tensor

from regard.attention.attend import masked_softmax, weighted_sum
from regard.attention.scores import DotScore, Score
from regard.attention.spans import AttentionOutput, GlobalAttention, Prepared, Sample


class HardAttention(GlobalAttention):
    """Attention to one position: sampled in training, the most likely one in evaluation.

    Xu et al. 2015, section 4.1. In training, some hypotheses use soft attention, i.e. the expected
    context, which reduces the variance of the gradient (the paper: with probability 0.5). They are
    sampled once per sequence. Early samples are uninformative, so the probability may be annealed
    from 1.

    Args:
        score: Score function of query and key.
        soft_share: Probability of soft attention per hypothesis in training.
        soft_steps: Training batches over which that probability decreases from 1 to `soft_share`.
    """

    num_begun: Tensor

    def __init__(self, score: Score, *, soft_share: float = 0.5, soft_steps: int = 0) -> None:
        super().__init__(score)
        self.soft_share = soft_share
        self.soft_steps = soft_steps
        # The counter is needed for annealing only. If it is not saved, it must have a value also
        # in a model that is built without memory.
        device = None if soft_steps > 0 else "cpu"
        self.register_buffer("num_begun", torch.tensor(0, device=device), persistent=soft_steps > 0)

    def start(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Sample the hypotheses that use soft attention: (B·W,), bool."""
        mask = prepared["mask"]
        share = self._next_share() if self.training else 0.0
        return torch.rand(len(mask) * beams, device=mask.device) < share

    def _next_share(self) -> Tensor:
        """Return the probability of soft attention for the next training batch."""
        remaining = (self.soft_steps - self.num_begun).clamp(min=0) / max(self.soft_steps, 1)
        self.num_begun += 1
        return self.soft_share + (1 - self.soft_share) * remaining

    def advance(self, is_soft: Tensor, weights: Tensor) -> Tensor:
        """Return `is_soft` unchanged: the choice holds for the whole sequence."""
        return is_soft

    def forward(self, queries: Tensor, prepared: Prepared, is_soft: Tensor) -> AttentionOutput:
        """Attend from each query to one position, whose weight is 1.

        Args:
            queries: (B, Q, D).
            prepared: Output of `prepare`.
            is_soft: (B, Q), True = soft attention: the weights are the probabilities.
        """
        probs = masked_softmax(
            self.score(queries, prepared["keys"]), prepared["mask"][:, None]
        )  # (B, Q, S)
        # Avoid log 0, whose gradient is NaN.
        logs = probs.clamp(min=torch.finfo(probs.dtype).tiny).log()
        sampled = self.sample(probs)[..., None]  # (B, Q, 1)
        weights = torch.zeros_like(probs).scatter(-1, sampled, 1.0)
        weights = torch.where(is_soft[..., None], probs, weights)
        log_probs = logs.gather(-1, sampled)[..., 0].masked_fill(is_soft, 0.0)  # (B, Q)
        entropies = -(probs * logs).sum(-1)
        return AttentionOutput(
            weighted_sum(weights, prepared["values"]), weights, Sample(log_probs, entropies)
        )

    def sample(self, probs: Tensor) -> Tensor:
        """Sample a position (B, Q) from each row of probabilities (B, Q, S)."""
        if self.training:
            # Exponential race: argmax of p / Exp(1) is a sample from p.
            probs = probs / torch.empty_like(probs).exponential_()
        return probs.argmax(-1)


if __name__ == "__main__":
    torch.manual_seed(0)
    attention = HardAttention(DotScore(2, 2), soft_share=0.0)
    states = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]])
    source = attention.prepare(states, torch.ones(1, 3).bool())
    queries = torch.tensor([[[1.0, 0.5]]]).expand(1, 1000, 2)
    attended = attention(queries, source, torch.zeros(1, 1000).bool())
    print("frequency of each position:", attended.weights[0].mean(0))
