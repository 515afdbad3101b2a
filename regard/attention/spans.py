"""Source positions a decoder attends to: all (global), a window (local), or ahead (monotonic).

All share one signature. `prepare(states, mask)` is done once per sentence; calling the module
returns the context and the weights of every query. Beams are just more queries of a sentence.
What an attention remembers between steps is one tensor a hypothesis: `start` makes it, `advance`
returns the next one. It is the number of steps taken, or the weights of the last step.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention, at_least_float32, mix, weigh
from regard.attention.masks import window
from regard.attention.scores import DotScore, Score
from regard.core.module import Linear

Prepared = dict[str, Tensor]
SpanKind = Literal["global", "local_m", "local_p", "monotonic"]


class Sample(NamedTuple):
    """What hard attention learns from: one position was sampled for each query."""

    log_probs: Tensor
    """(B, Q), the log-probability of the sampled position; 0 where none was sampled."""
    entropies: Tensor
    """(B, Q), the entropy of the distribution that was sampled from."""


class Attended(NamedTuple):
    """The result of attending; the weights come second, as with every attention."""

    context: Tensor
    """(B, Q, D)."""
    weights: Tensor
    """(B, Q, S)."""
    sample: Sample | None = None
    """What was sampled, by hard attention."""


class GlobalAttention(Attention):
    """Global attention: every query sees every real position (Luong et al. 2015, section 3.1).

    Args:
        score: How well a query fits a key.
        half_width: Half the width of the window, where there is one.
    """

    follows_weights = False
    """Whether a step depends on the weights of the step before, so that a target must run step by
    step; otherwise it depends on the number of steps taken at most."""

    def __init__(self, score: Score, *, half_width: int = 0) -> None:
        super().__init__()
        self.score = score
        self.half_width = half_width

    def prepare(self, states: Tensor, mask: Tensor) -> Prepared:
        """Do once per sentence what does not depend on the queries.

        Args:
            states: (B, S, D), at once keys and values.
            mask: (B, S), True = a real position.
        """
        return {"keys": self.score.prepare(states), "values": states, "mask": mask}

    def start(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Return the number of steps taken before the first step: zeros, (B·W,)."""
        mask = prepared["mask"]
        return mask.new_zeros(mask.shape[0] * beams, dtype=torch.long)

    def advance(self, steps: Tensor, weights: Tensor) -> Tensor:
        """Return what is remembered after a step: here the number of steps taken, (B·W,).

        Args:
            steps: What was remembered before it.
            weights: (B·W, S), of this step.
        """
        return steps + 1

    def forward(self, queries: Tensor, prepared: Prepared, steps: Tensor) -> Attended:
        """Attend from every query.

        Args:
            queries: (B, Q, D).
            prepared: What `prepare` returned.
            steps: (B, Q), the number of steps taken before each query.
        """
        return self.attend(queries, prepared, prepared["mask"][:, None])

    def attend(self, queries: Tensor, prepared: Prepared, allowed: Tensor) -> Attended:
        """Attend from queries (B, Q, D) to the positions allowed, (B, Q, S) or broadcastable."""
        weights = weigh(self.score(queries, prepared["keys"]), allowed)  # (B, Q, S)
        return Attended(mix(weights, prepared["values"]), weights)


class LocalMonotonicAttention(GlobalAttention):
    """local-m: the window moves along the source by one position a step."""

    def forward(self, queries: Tensor, prepared: Prepared, steps: Tensor) -> Attended:
        """Attend from every query to the window around the position of its step."""
        mask = prepared["mask"]
        # A target longer than its source stays at the end of the source.
        centres = steps.minimum(mask.sum(-1, keepdim=True) - 1)  # (B, Q)
        allowed = window(centres, mask.shape[-1], half_width=self.half_width) & mask[:, None]
        return self.attend(queries, prepared, allowed)


class LocalPredictiveAttention(GlobalAttention):
    """local-p: each query predicts the centre of its window (Luong et al. 2015, eq. 9-10).

    p = S · sigmoid(v · tanh(W q)), and a Gaussian around p favours what lies near it.
    """

    def __init__(self, score: Score, *, half_width: int = 0) -> None:
        super().__init__(score, half_width=half_width)
        self.position_map = Linear(score.query_dim, score.query_dim, bias=False)
        self.position = Linear(score.query_dim, 1, bias=False)

    def forward(self, queries: Tensor, prepared: Prepared, steps: Tensor) -> Attended:
        """Attend from every query to the window around the position it predicts."""
        mask = prepared["mask"]
        share = (
            self.position(self.position_map(queries).tanh()).float().sigmoid().squeeze(-1)
        )  # (B, Q)
        # S is the last real position, so that the window never leaves the sentence.
        centres = share * (mask.sum(-1, keepdim=True) - 1)
        allowed = window(centres, mask.shape[-1], half_width=self.half_width) & mask[:, None]
        weights = weigh(self.score(queries, prepared["keys"]), allowed)
        distance = torch.arange(mask.shape[-1], device=mask.device) - centres[..., None]
        # The spread of the paper: half the half_width.
        weights = weights * (-2.0 * (distance / self.half_width) ** 2).exp()  # (B, Q, S)
        return Attended(mix(weights, prepared["values"]), weights)


class MonotonicAttention(GlobalAttention):
    """Monotonic attention: goes on from the position of the step before and stops at one.

    Raffel et al. 2017, section 2. Each position is taken with p = sigmoid(gain · score + offset).
    In training the weights are the expected alignment over all ways to stop, and noise drives p
    towards 0 and 1; in evaluation the first position with p ≥ 0.5 is taken. A query at the
    last position stops there; in the paper it may pass that as well, to a context of zeros, and in
    expectation would then attend to nothing for ever. What is remembered is the alignment of the
    step before, one number a source position.
    """

    follows_weights = True
    noise = 1.0
    """Deviation of what is added to the energies in training."""

    def __init__(self, score: Score, *, half_width: int = 0) -> None:
        super().__init__(score, half_width=half_width)
        self.gain = nn.Parameter(torch.ones(()))
        # Below zero, so that at first it goes on: what is never reached is never learned.
        self.offset = nn.Parameter(torch.tensor(-1.0))

    def start(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Return the alignment before the first step: the first position, (B·W, S)."""
        first = torch.zeros_like(prepared["mask"], dtype=torch.get_default_dtype())  # (B, S)
        first[:, 0] = 1.0
        return first.repeat_interleave(beams, dim=0)  # (B·W, S)

    def advance(self, alignment: Tensor, weights: Tensor) -> Tensor:
        """Return the alignment after a step: its weights, (B·W, S)."""
        return weights

    def forward(self, queries: Tensor, prepared: Prepared, alignment: Tensor) -> Attended:
        """Attend from every query to positions from its last one on; the weights sum to one.

        Args:
            queries: (B, Q, D).
            prepared: What `prepare` returned.
            alignment: (B, Q, S), the weights of the step before.
        """
        scores = at_least_float32(self.score(queries, prepared["keys"]))  # (B, Q, S)
        energies = self.gain * scores + self.offset
        mask = prepared["mask"][:, None]  # (B, 1, S)
        if self.training:
            energies = energies + self.noise * torch.randn_like(energies)
            weights = expect_alignment(energies, mask, alignment)
        else:
            weights = choose_alignment(energies, mask, alignment)
        return Attended(mix(weights, prepared["values"]), weights)


def expect_alignment(energies: Tensor, mask: Tensor, alignment: Tensor) -> Tensor:
    """Return the probability that each position is the one at which reading stops.

    Eq. 9: from position k, position j is reached if none from k to j - 1 was taken. The products of
    1 - p are sums of logarithms here, each summed for itself; the paper's form in one sweep
    (appendix C.1) divides by products that vanish in a long source.

    Args:
        energies: (B, Q, S), the logits of p.
        mask: (B, 1, S), True = a real position.
        alignment: (B, Q, S), the alignment of the step before.

    Returns:
        (B, Q, S).
    """
    # What it takes to come to a position from the one before it.
    passed = nn.functional.logsigmoid(-energies).masked_fill(~mask, 0.0)  # (B, Q, S)
    passed = nn.functional.pad(passed[..., :-1], (1, 0))
    # Row j, column k: all that lies between position k and position j; never above zero.
    spans = passed[..., None].expand(*passed.shape, passed.shape[-1]).tril(-1).cumsum(-2)
    reached = (spans.exp().tril() * alignment[..., None, :]).sum(-1)  # (B, Q, S)
    return reached * energies.sigmoid().masked_fill(_last(mask), 1.0).masked_fill(~mask, 0.0)


def choose_alignment(energies: Tensor, mask: Tensor, alignment: Tensor) -> Tensor:
    """Choose the first position from the last choice on whose p is at least one half.

    Args:
        energies: (B, Q, S), the logits of p.
        mask: (B, 1, S), True = a real position.
        alignment: (B, Q, S), 1 at the last choice.

    Returns:
        (B, Q, S), 1 at the new choice.
    """
    is_ahead = alignment.cumsum(-1) > 0
    is_wanted = is_ahead & mask & ((energies >= 0) | _last(mask))
    is_first = is_wanted & (is_wanted.cumsum(-1) == 1)
    return is_first.to(energies.dtype)


def _last(mask: Tensor) -> Tensor:
    """Tell the last real position of each row from all others."""
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
