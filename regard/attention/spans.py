"""Attention spans of recurrent decoders: global, local (a window) and monotonic.

All have one signature. `prepare(states, mask)` runs once per sentence; calling the module returns
context and weights of each query. Beams are additional queries of a sentence. The state between
steps is one tensor per hypothesis, created by `start` and updated by `advance`: the number of steps
taken, or the weights of the last step.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention, at_least_float32, masked_softmax, weighted_sum
from regard.attention.masks import window_mask
from regard.attention.scores import DotScore, Score
from regard.core.module import Linear

Prepared = dict[str, Tensor]
SpanKind = Literal["global", "local_m", "local_p", "monotonic"]


class Sample(NamedTuple):
    """Positions sampled by hard attention, one per query; needed for its loss."""

    log_probs: Tensor
    """(B, Q), log-probability of the sampled position; 0 where none was sampled."""
    entropies: Tensor
    """(B, Q), entropy of the attention distribution."""


class AttentionOutput(NamedTuple):
    """Output of attention: context and weights."""

    context: Tensor
    """(B, Q, D)."""
    weights: Tensor
    """(B, Q, S)."""
    sample: Sample | None = None
    """Samples of hard attention."""


class GlobalAttention(Attention):
    """Global attention to all real positions (Luong et al. 2015, section 3.1).

    Args:
        score: Score function of query and key.
        half_width: Half the width of the window of local attention.
    """

    follows_weights = False
    """Whether a step depends on the weights of the previous step. If so, a target cannot be
    processed in parallel."""

    def __init__(self, score: Score, *, half_width: int = 0) -> None:
        super().__init__()
        self.score = score
        self.half_width = half_width

    def prepare(self, states: Tensor, mask: Tensor) -> Prepared:
        """Compute what does not depend on the queries, once per sentence.

        Args:
            states: (B, S, D), used as keys and as values.
            mask: (B, S), True = a real position.
        """
        return {"keys": self.score.prepare(states), "values": states, "mask": mask}

    def start(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Return the state before the first step: zero steps taken, (B·W,)."""
        mask = prepared["mask"]
        return mask.new_zeros(mask.shape[0] * beams, dtype=torch.long)

    def advance(self, steps: Tensor, weights: Tensor) -> Tensor:
        """Return the state after a step: the number of steps taken, (B·W,).

        Args:
            steps: (B·W,), the state before the step.
            weights: (B·W, S), the weights of this step.
        """
        return steps + 1

    def forward(self, queries: Tensor, prepared: Prepared, steps: Tensor) -> AttentionOutput:
        """Attend from each query.

        Args:
            queries: (B, Q, D).
            prepared: Output of `prepare`.
            steps: (B, Q), number of steps before each query.
        """
        return self.attend(queries, prepared, prepared["mask"][:, None])

    def attend(self, queries: Tensor, prepared: Prepared, allowed: Tensor) -> AttentionOutput:
        """Attend from queries (B, Q, D) to the allowed positions, (B, Q, S) or broadcastable."""
        weights = masked_softmax(self.score(queries, prepared["keys"]), allowed)  # (B, Q, S)
        return AttentionOutput(weighted_sum(weights, prepared["values"]), weights)


class LocalMonotonicAttention(GlobalAttention):
    """local-m: a window that moves along the source by one position per step."""

    def forward(self, queries: Tensor, prepared: Prepared, steps: Tensor) -> AttentionOutput:
        """Attend from each query to the window around the position of its step."""
        mask = prepared["mask"]
        # If the target is longer than the source, the window stays at the end of the source.
        centres = steps.minimum(mask.sum(-1, keepdim=True) - 1)  # (B, Q)
        allowed = window_mask(centres, mask.shape[-1], half_width=self.half_width) & mask[:, None]
        return self.attend(queries, prepared, allowed)


class LocalPredictiveAttention(GlobalAttention):
    """local-p: a window whose centre is predicted (Luong et al. 2015, eq. 9-10).

    The centre is p = S · sigmoid(v · tanh(W q)). The weights are multiplied by a Gaussian around p.
    """

    def __init__(self, score: Score, *, half_width: int = 0) -> None:
        super().__init__(score, half_width=half_width)
        self.position_map = Linear(score.query_dim, score.query_dim, bias=False)
        self.position = Linear(score.query_dim, 1, bias=False)

    def forward(self, queries: Tensor, prepared: Prepared, steps: Tensor) -> AttentionOutput:
        """Attend from each query to the window around its predicted position."""
        mask = prepared["mask"]
        fraction = (
            self.position(self.position_map(queries).tanh()).float().sigmoid().squeeze(-1)
        )  # (B, Q)
        # S is the last real position, so the centre is within the sentence.
        centres = fraction * (mask.sum(-1, keepdim=True) - 1)
        allowed = window_mask(centres, mask.shape[-1], half_width=self.half_width) & mask[:, None]
        weights = masked_softmax(self.score(queries, prepared["keys"]), allowed)
        distance = torch.arange(mask.shape[-1], device=mask.device) - centres[..., None]
        # The standard deviation of the paper: half of `half_width`.
        weights = weights * (-2.0 * (distance / self.half_width) ** 2).exp()  # (B, Q, S)
        return AttentionOutput(weighted_sum(weights, prepared["values"]), weights)


class MonotonicAttention(GlobalAttention):
    """Monotonic attention: each step selects a position at or after that of the previous step.

    Raffel et al. 2017, section 2. A position is selected with p = sigmoid(gain · score + offset).
    In training, the weights are the expected alignment, and noise pushes p towards 0 and 1. In
    evaluation, the first position with p ≥ 0.5 is selected. The last position is always selected if
    it is reached; the paper allows passing it, with a context of zeros, after which the expected
    weights stay zero. The state is the alignment of the previous step, (B·W, S).
    """

    follows_weights = True
    noise = 1.0
    """Standard deviation of the noise added to the energies in training."""

    def __init__(self, score: Score, *, half_width: int = 0) -> None:
        super().__init__(score, half_width=half_width)
        self.gain = nn.Parameter(torch.ones(()))
        # Negative, so that p is small at first: positions that are never reached get no gradient.
        self.offset = nn.Parameter(torch.tensor(-1.0))

    def start(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Return the initial alignment: the first position, (B·W, S)."""
        first = torch.zeros_like(prepared["mask"], dtype=torch.get_default_dtype())  # (B, S)
        first[:, 0] = 1.0
        return first.repeat_interleave(beams, dim=0)  # (B·W, S)

    def advance(self, alignment: Tensor, weights: Tensor) -> Tensor:
        """Return the alignment after a step, which are its weights, (B·W, S)."""
        return weights

    def forward(self, queries: Tensor, prepared: Prepared, alignment: Tensor) -> AttentionOutput:
        """Attend from each query to positions at or after its last one. The weights sum to one.

        Args:
            queries: (B, Q, D).
            prepared: Output of `prepare`.
            alignment: (B, Q, S), the weights of the previous step.
        """
        scores = at_least_float32(self.score(queries, prepared["keys"]))  # (B, Q, S)
        energies = self.gain * scores + self.offset
        mask = prepared["mask"][:, None]  # (B, 1, S)
        if self.training:
            energies = energies + self.noise * torch.randn_like(energies)
            weights = expect_alignment(energies, mask, alignment)
        else:
            weights = choose_alignment(energies, mask, alignment)
        return AttentionOutput(weighted_sum(weights, prepared["values"]), weights)


def expect_alignment(energies: Tensor, mask: Tensor, alignment: Tensor) -> Tensor:
    """Return the probability that each position is selected.

    Eq. 9: from position k, position j is reached if none from k to j - 1 is selected. Products of
    1 - p are computed as sums of logarithms. The parallel form of the paper (appendix C.1) divides
    by cumulative products, which underflow for long sources.

    Args:
        energies: (B, Q, S), logits of p.
        mask: (B, 1, S), True = a real position.
        alignment: (B, Q, S), the alignment of the previous step.

    Returns:
        (B, Q, S).
    """
    # Log-probability of moving to a position from the one before it.
    log_skip = nn.functional.logsigmoid(-energies).masked_fill(~mask, 0.0)  # (B, Q, S)
    log_skip = nn.functional.pad(log_skip[..., :-1], (1, 0))
    # Row j, column k: log-probability of moving from position k to position j, at most 0.
    log_reach = log_skip[..., None].expand(*log_skip.shape, log_skip.shape[-1]).tril(-1).cumsum(-2)
    reached = (log_reach.exp().tril() * alignment[..., None, :]).sum(-1)  # (B, Q, S)
    return reached * energies.sigmoid().masked_fill(_is_last(mask), 1.0).masked_fill(~mask, 0.0)


def choose_alignment(energies: Tensor, mask: Tensor, alignment: Tensor) -> Tensor:
    """Select the first position at or after the last one whose p is at least one half.

    Args:
        energies: (B, Q, S), logits of p.
        mask: (B, 1, S), True = a real position.
        alignment: (B, Q, S), 1 at the last selected position.

    Returns:
        (B, Q, S), 1 at the selected position.
    """
    is_ahead = alignment.cumsum(-1) > 0
    is_candidate = is_ahead & mask & ((energies >= 0) | _is_last(mask))
    is_first = is_candidate & (is_candidate.cumsum(-1) == 1)
    return is_first.to(energies.dtype)


def _is_last(mask: Tensor) -> Tensor:
    """Return a mask that is True at the last real position of each row."""
    return mask & (mask.flip(-1).cumsum(-1).flip(-1) == 1)


SPANS: dict[str, type[GlobalAttention]] = {
    "global": GlobalAttention,
    "local_m": LocalMonotonicAttention,
    "local_p": LocalPredictiveAttention,
    "monotonic": MonotonicAttention,
}


if __name__ == "__main__":
    torch.manual_seed(0)
    states = torch.randn(1, 6, 4)
    for name, kind in SPANS.items():
        attention = kind(DotScore(4, 4), half_width=1).eval()
        source = attention.prepare(states, torch.ones(1, 6).bool())
        attended = attention(states[:, 2:3], source, attention.start(source)[:, None])
        print(f"{name:>9}", attended.weights.detach())
