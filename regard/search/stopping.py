"""End of beam search: when a sentence is done."""

import torch
from torch import Tensor

from regard.search.length_penalty import length_scale
from regard.search.settings import SearchConfig


class Stopping:
    """Finished hypotheses of each sentence so far, and the rule of `search.stopping`.

    With one beam, or one per group, search ends with the first hypothesis, as greedy search does.

    Args:
        config: The rule, the number of beams and groups, and the length penalty.
        limits: (B,) maximum number of tokens of each sentence.
        num_best: Number of hypotheses to return per sentence, which 'bound' waits for.
    """

    def __init__(self, config: SearchConfig, limits: Tensor, *, num_best: int) -> None:
        self._config = config
        self._width = config.beams // config.groups
        shape = (len(limits), config.groups)
        self._num_ended = torch.zeros(shape, dtype=torch.long, device=limits.device)
        self._best = torch.full(shape, -torch.inf, device=limits.device)
        self._results = torch.full((*shape, num_best), -torch.inf, device=limits.device)
        self._scale_at_limit = length_scale(limits.float(), config)

    def update(
        self, finished: Tensor, active: Tensor, *, length: int, complete: Tensor | None = None
    ) -> Tensor:
        """Add the results of a step and return whether each sentence is done, (B,).

        Args:
            finished: (B, W) log-probabilities of the results of this step; -inf = none.
            active: (B, W) log-probabilities of the beams to continue; -inf = none.
            length: Number of tokens of all these hypotheses.
            complete: (B, W) log-probabilities of the active beams that may end in the next step;
                all of them if not given.
        """
        scale = length_scale(float(length), self._config)
        by_group = self._group(finished)
        self._num_ended = self._num_ended + by_group.isfinite().sum(2)
        is_full = (self._num_ended >= self._width).all(1)
        if active.shape[1] == self._config.groups:
            return is_full
        if self._config.stopping == "none":
            return active.amax(1) == -torch.inf
        if self._config.stopping == "bound":
            values = torch.cat([self._results, by_group / scale], dim=2)
            self._results = values.topk(self._results.shape[2], dim=2).values
            # The results of one group are distinct; those of several may be equal.
            worst = self._results[..., -1].amax(1)
            # Log-probabilities never increase, and the scale is largest at the maximum length.
            best_possible = active.amax(1) / self._scale_at_limit  # (B,)
            return best_possible <= worst
        self._best = self._best.maximum(by_group.amax(2) / scale)
        rivals = self._group(active if complete is None else complete).amax(2) / scale
        return is_full & (self._best >= rivals).all(1)

    def select(self, sentences: Tensor) -> None:
        """Continue with some sentences, (B,)."""
        self._num_ended = self._num_ended[sentences]
        self._best = self._best[sentences]
        self._results = self._results[sentences]
        self._scale_at_limit = self._scale_at_limit[sentences]

    def _group(self, totals: Tensor) -> Tensor:
        """Split the beams of each sentence (B, W) into groups."""
        return totals.view(len(totals), self._config.groups, -1)
