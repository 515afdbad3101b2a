"""How far a decoder looks: everywhere (global), near one place (local), or only ahead (monotonic).

All share one signature. `prepare(states, mask)` is done once per sentence; calling the module
answers every query with its context and its weights. Beams are just more queries of a sentence.
Where a hypothesis stands, its place, is one tensor: `begin` makes it, `advance` moves it on.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention, mix, weigh
from regard.attention.masks import window
from regard.attention.monotonic import choose_ahead, expect_ahead
from regard.attention.scores import Score

Prepared = dict[str, Tensor]
SpanKind = Literal["global", "local_m", "local_p", "monotonic"]


class GlobalAttention(Attention):
    """Global attention: every query sees every real position (Luong et al. 2015, section 3.1).

    Args:
        score: How well a query fits a key.
        half_width: Half the width of the window, where there is one.
    """

    follows_weights = False
    """Whether a place depends on the weights before it, so that a target must run step by step;
    otherwise it is the number of steps taken."""

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

    def begin(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Return where hypotheses stand before their first step, (B·W, ...)."""
        mask = prepared["mask"]
        return mask.new_zeros(mask.shape[0] * beams, dtype=torch.long)

    def advance(self, place: Tensor, weights: Tensor) -> Tensor:
        """Return where hypotheses stand after a step.

        Args:
            place: (B·W, ...), where they stood.
            weights: (B·W, S), where they looked from there.
        """
        return place + 1

    def forward(self, queries: Tensor, prepared: Prepared, places: Tensor) -> tuple[Tensor, Tensor]:
        """Answer every query.

        Args:
            queries: (B, Q, D).
            prepared: What `prepare` returned.
            places: (B, Q, ...), where each query stands.

        Returns:
            The context (B, Q, D) and the weights (B, Q, S).
        """
        scores = self.score(queries, prepared["keys"])  # (B, Q, S)
        weights = weigh(scores, prepared["mask"][:, None])
        return mix(weights, prepared["values"]), weights


class LocalMonotonicAttention(GlobalAttention):
    """local-m: the window walks along the source in step with the target."""

    def forward(self, queries: Tensor, prepared: Prepared, places: Tensor) -> tuple[Tensor, Tensor]:
        """Answer every query from the window around its own position."""
        mask = prepared["mask"]
        # A target longer than its source goes on looking at the end of the source.
        centres = places.minimum(mask.sum(-1, keepdim=True) - 1)  # (B, Q)
        allowed = window(centres, mask.shape[-1], half_width=self.half_width) & mask[:, None]
        weights = weigh(self.score(queries, prepared["keys"]), allowed)
        return mix(weights, prepared["values"]), weights


class LocalPredictiveAttention(GlobalAttention):
    """local-p: each query says where it wants to look (Luong et al. 2015, eq. 9-10).

    p = S · sigmoid(v · tanh(W q)), and a Gaussian around p favours what lies near it.
    """

    def __init__(self, score: Score, *, half_width: int = 0) -> None:
        super().__init__(score, half_width=half_width)
        self.place_map = nn.Linear(score.query_dim, score.query_dim, bias=False)
        self.place = nn.Linear(score.query_dim, 1, bias=False)

    def forward(self, queries: Tensor, prepared: Prepared, places: Tensor) -> tuple[Tensor, Tensor]:
        """Answer every query from the window around the place it asks for."""
        mask = prepared["mask"]
        share = self.place(self.place_map(queries).tanh()).float().sigmoid().squeeze(-1)  # (B, Q)
        # S is the last real position, so that the window never leaves the sentence.
        centres = share * (mask.sum(-1, keepdim=True) - 1)
        allowed = window(centres, mask.shape[-1], half_width=self.half_width) & mask[:, None]
        weights = weigh(self.score(queries, prepared["keys"]), allowed)
        distance = torch.arange(mask.shape[-1], device=mask.device) - centres[..., None]
        # The spread of the paper: half the half_width.
        weights = weights * (-2.0 * (distance / self.half_width) ** 2).exp()  # (B, Q, S)
        return mix(weights, prepared["values"]), weights


class MonotonicAttention(GlobalAttention):
    """Monotonic attention: reads on from where it stood, and stops at one position.

    Raffel et al. 2017, section 2. Each position is taken with p = sigmoid(gain · score + offset).
    In training the weights are the expected alignment over all ways to stop, and noise drives p
    towards 0 and 1; in evaluation the first position with p ≥ 0.5 is taken. A place is the
    alignment of the step before, one number a source position.
    """

    follows_weights = True
    noise = 1.0
    """Deviation of what is added to the energies in training."""

    def __init__(self, score: Score, *, half_width: int = 0) -> None:
        super().__init__(score, half_width=half_width)
        self.gain = nn.Parameter(torch.ones(()))
        # Below zero, so that at first it reads on: what is never reached is never learned.
        self.offset = nn.Parameter(torch.tensor(-1.0))

    def begin(self, prepared: Prepared, *, beams: int = 1) -> Tensor:
        """Return where hypotheses stand before their first step: at the first position."""
        first = torch.zeros_like(prepared["mask"], dtype=torch.get_default_dtype())  # (B, S)
        first[:, 0] = 1.0
        return first.repeat_interleave(beams, dim=0)  # (B·W, S)

    def advance(self, place: Tensor, weights: Tensor) -> Tensor:
        """Return where hypotheses stand after a step: where they looked."""
        return weights

    def forward(self, queries: Tensor, prepared: Prepared, places: Tensor) -> tuple[Tensor, Tensor]:
        """Answer every query from where it stands on.

        Args:
            queries: (B, Q, D).
            prepared: What `prepare` returned.
            places: (B, Q, S), the weights of the step before.

        Returns:
            The context (B, Q, D) and the weights (B, Q, S), which sum to one.
        """
        scores = self.score(queries, prepared["keys"])  # (B, Q, S)
        if scores.dtype in (torch.bfloat16, torch.float16):
            scores = scores.float()
        energies = self.gain * scores + self.offset
        mask = prepared["mask"][:, None]  # (B, 1, S)
        if self.training:
            energies = energies + self.noise * torch.randn_like(energies)
            weights = expect_ahead(energies, mask, places)
        else:
            weights = choose_ahead(energies, mask, places)
        return mix(weights, prepared["values"]), weights


SPANS: dict[str, type[GlobalAttention]] = {
    "global": GlobalAttention,
    "local_m": LocalMonotonicAttention,
    "local_p": LocalPredictiveAttention,
    "monotonic": MonotonicAttention,
}
