"""How far a decoder looks: everywhere (global), or near one place of the source (local).

All share one signature. `prepare(states, mask)` is done once per sentence; calling the module
answers every query with its context and its weights. Beams are just more queries of a sentence.
"""

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention, mix, weigh
from regard.attention.masks import window
from regard.attention.scores import Score

Prepared = dict[str, Tensor]


class GlobalAttention(Attention):
    """Global attention: every query sees every real position (Luong et al. 2015, section 3.1)."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def prepare(self, states: Tensor, mask: Tensor) -> Prepared:
        """Do once per sentence what does not depend on the queries.

        Args:
            states: (B, S, D), at once keys and values.
            mask: (B, S), True = a real position.
        """
        return {"keys": self.score.prepare(states), "values": states, "mask": mask}

    def forward(
        self, queries: Tensor, prepared: Prepared, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Answer every query.

        Args:
            queries: (B, Q, D).
            prepared: What `prepare` returned.
            positions: (B, Q), the target position each query stands at, counted from 0.

        Returns:
            The context (B, Q, D) and the weights (B, Q, S).
        """
        scores = self.score(queries, prepared["keys"])  # (B, Q, S)
        weights = weigh(scores, prepared["mask"][:, None])
        return mix(weights, prepared["values"]), weights


class LocalMonotonicAttention(GlobalAttention):
    """local-m: the window walks along the source in step with the target."""

    def __init__(self, score: Score, *, reach: int) -> None:
        super().__init__(score)
        self.reach = reach

    def forward(
        self, queries: Tensor, prepared: Prepared, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Answer every query from the window around its own position."""
        mask = prepared["mask"]
        # A target longer than its source goes on looking at the end of the source.
        centres = positions.minimum(mask.sum(-1, keepdim=True) - 1)  # (B, Q)
        allowed = window(centres, mask.shape[-1], reach=self.reach) & mask[:, None]
        weights = weigh(self.score(queries, prepared["keys"]), allowed)
        return mix(weights, prepared["values"]), weights


class LocalPredictiveAttention(GlobalAttention):
    """local-p: each query says where it wants to look (Luong et al. 2015, eq. 9-10).

    p = S · sigmoid(v · tanh(W q)), and a Gaussian around p favours what lies near it.
    """

    def __init__(self, score: Score, *, reach: int) -> None:
        super().__init__(score)
        self.reach = reach
        self.place_map = nn.Linear(score.query_dim, score.query_dim, bias=False)
        self.place = nn.Linear(score.query_dim, 1, bias=False)

    def forward(
        self, queries: Tensor, prepared: Prepared, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Answer every query from the window around the place it asks for."""
        mask = prepared["mask"]
        share = self.place(self.place_map(queries).tanh()).float().sigmoid().squeeze(-1)  # (B, Q)
        # S is the last real position, so that the window never leaves the sentence.
        centres = share * (mask.sum(-1, keepdim=True) - 1)
        allowed = window(centres, mask.shape[-1], reach=self.reach) & mask[:, None]
        weights = weigh(self.score(queries, prepared["keys"]), allowed)
        distance = torch.arange(mask.shape[-1], device=mask.device) - centres[..., None]
        # The spread of the paper: half the reach.
        weights = weights * (-2.0 * (distance / self.reach) ** 2).exp()  # (B, Q, S)
        return mix(weights, prepared["values"]), weights
