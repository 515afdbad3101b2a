"""End of beam search: when a sentence is done."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.core.native.kernels import stop
from regard.search.length_penalty import length_scale
from regard.search.settings import SearchConfig


@dataclass(frozen=True)
class Stopping:
    """Finished hypotheses of each sentence so far, and the rule of `search.stopping`.

    With one beam, or one per group, search ends with the first hypothesis, as greedy search does.
    """

    config: SearchConfig
    """The rule, the number of beams and groups, and the length penalty."""
    num_ended: Tensor
    """(B, G), number of results of each group of beams."""
    best: Tensor
    """(B, G), value of the best result."""
    results: Tensor
    """(B, G, N), values of the N best results, which 'bound' waits for."""
    scale_at_limit: Tensor
    """(B,), scale of the log-probability at the maximum length."""

    @classmethod
    def start(cls, config: SearchConfig, limits: Tensor, *, num_best: int) -> "Stopping":
        """Return the state before the first step.

        Args:
            config: The settings.
            limits: (B,) maximum number of tokens of each sentence.
            num_best: Number of hypotheses to return per sentence.
        """
        shape = (len(limits), config.groups)
        return cls(
            config,
            num_ended=torch.zeros(shape, dtype=torch.long, device=limits.device),
            best=torch.full(shape, -torch.inf, device=limits.device),
            results=torch.full((*shape, num_best), -torch.inf, device=limits.device),
            scale_at_limit=length_scale(limits.float(), config),
        )

    def update(
        self, finished: Tensor, active: Tensor, *, length: int, complete: Tensor | None = None
    ) -> tuple["Stopping", Tensor]:
        """Add the results of a step; return the next state and whether each sentence is done, (B,).

        Args:
            finished: (B, W) log-probabilities of the results of this step; -inf = none.
            active: (B, W) log-probabilities of the beams to continue; -inf = none.
            length: Number of tokens of all these hypotheses.
            complete: (B, W) log-probabilities of the active beams that may end in the next step;
                all of them if not given.
        """
        scale = length_scale(float(length), self.config)
        if self._is_usual and complete is None:
            found = stop(finished, active, num_ended=self.num_ended, best=self.best, scale=scale)
            if found is not None:
                num_ended, best, is_done = found
                return Stopping(
                    self.config, num_ended, best, self.results, self.scale_at_limit
                ), is_done
        by_group = self._group(finished)
        num_ended = self.num_ended + (by_group > -torch.inf).sum(2)
        width = self.config.beams // self.config.groups
        is_full = _all(num_ended >= width)
        state = replace(self, num_ended=num_ended)
        if active.shape[1] == self.config.groups:
            return state, is_full
        if self.config.stopping == "none":
            return state, active.amax(1) == -torch.inf
        if self.config.stopping == "bound":
            values = torch.cat([self.results, by_group / scale], dim=2)
            results = values.topk(self.results.shape[2], dim=2).values
            # The results of one group are distinct; those of several may be equal.
            worst = results[..., -1].amax(1)
            # Log-probabilities never increase, and the scale is largest at the maximum length.
            best_possible = active.amax(1) / self.scale_at_limit  # (B,)
            return replace(state, results=results), best_possible <= worst
        best = self.best.maximum(by_group.amax(2) / scale)
        rivals = self._group(active if complete is None else complete).amax(2) / scale
        return replace(state, best=best), is_full & _all(best >= rivals)

    @property
    def _is_usual(self) -> bool:
        """Whether several beams of one group end by the default rule."""
        config = self.config
        return config.groups == 1 and config.beams > 1 and config.stopping == "heuristic"

    def select(self, sentences: Tensor) -> "Stopping":
        """Return the state of some sentences, (B,)."""
        return replace(
            self,
            num_ended=self.num_ended[sentences],
            best=self.best[sentences],
            results=self.results[sentences],
            scale_at_limit=self.scale_at_limit[sentences],
        )

    def _group(self, totals: Tensor) -> Tensor:
        """Split the beams of each sentence (B, W) into groups."""
        return totals.view(len(totals), self.config.groups, -1)


def _all(by_group: Tensor) -> Tensor:
    """Return whether all groups of a sentence satisfy a condition, (B, G) → (B,)."""
    return by_group[:, 0] if by_group.shape[1] == 1 else by_group.all(1)
