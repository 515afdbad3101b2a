"""Candidates of a step of beam search: the most likely continuations, or those of diverse groups.

Candidates are the 2W continuations of W beams: the first W of them become results if they end, and
of all of them, the first W that do not end become the next beams.
"""

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis
from regard.search.settings import SearchConfig
from regard.search.top_k import top_continuations


class Candidates(Protocol):
    """Choice of the continuations of beams."""

    def choose(self, totals: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of candidates and their indices, beam · V + token, (B, 2W).

        Args:
            totals: (B, W) log-probability of each beam; -inf = no hypothesis.
            log_probs: (B·W, V) log-probabilities of the next token.
        """

    def keep(self, is_end: Tensor) -> Tensor:
        """Return the indices (B, W) of the candidates that become the next beams.

        Args:
            is_end: (B, 2W) whether each candidate ends.
        """


class TopCandidates:
    """The most likely continuations of all beams."""

    def __init__(self, beams: int) -> None:
        self.beams = beams

    def choose(self, totals: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the most likely continuations, most likely first, (B, 2W)."""
        # 2W continuations: even if W of them end, W are left to continue.
        return top_continuations(totals, log_probs, 2 * self.beams)

    def keep(self, is_end: Tensor) -> Tensor:
        """Return the most likely active candidates."""
        # A stable sort by `is_end` puts active hypotheses first and keeps their order.
        return is_end.int().argsort(dim=1, stable=True)[:, : self.beams]


class DiverseCandidates:
    """The most likely continuations of each group of beams, different from those of other groups.

    Vijayakumar et al. 2018 with Hamming diversity: groups choose one after another, and each token
    is penalised by `diversity` per beam of the groups before that continues with it in this step.
    The penalty affects the choice alone: totals stay the log-probabilities of the model.

    Args:
        groups: Number of groups.
        diversity: The penalty.
        end: The end token.
    """

    def __init__(self, groups: int, *, diversity: float, end: int) -> None:
        self.groups = groups
        self.diversity = diversity
        self.end = end

    def choose(self, totals: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the candidates, the first half of each group first, (B, 2W)."""
        batch, beams = totals.shape
        width, vocab = beams // self.groups, log_probs.shape[1]
        sums = (totals.flatten()[:, None] + log_probs).view(batch, self.groups, width, vocab)
        counts = sums.new_zeros(batch, vocab)  # number of earlier beams by token
        indices = []
        for group in range(self.groups):
            penalised = (sums[:, group] - self.diversity * counts[:, None]).flatten(1)
            values, best = penalised.topk(2 * width, dim=1)
            tokens = best % vocab
            kept = TopCandidates(width).keep(tokens == self.end)
            chosen = values.gather(1, kept).isfinite().to(counts.dtype)
            counts.scatter_add_(1, tokens.gather(1, kept), chosen)
            indices.append((best + group * width * vocab).view(batch, 2, width))
        chosen_indices = torch.stack(indices, dim=2).flatten(1)
        return sums.flatten(1).gather(1, chosen_indices), chosen_indices

    def keep(self, is_end: Tensor) -> Tensor:
        """Return the first active candidates of each group."""
        width = is_end.shape[1] // (2 * self.groups)
        halves = is_end.view(-1, 2, self.groups, width).transpose(1, 2)  # by group, then half
        order = halves.flatten(2).int().argsort(dim=2, stable=True)[..., :width]
        first = torch.arange(self.groups, device=is_end.device)[:, None] * width
        kept: Tensor = order // width * (self.groups * width) + first + order % width
        return kept.flatten(1)


def build_candidates(config: SearchConfig, *, end: int) -> Candidates:
    """Return the choice of candidates of the settings."""
    if config.groups == 1:
        return TopCandidates(config.beams)
    return DiverseCandidates(config.groups, diversity=config.diversity, end=end)


def distinct(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Drop hypotheses whose tokens another one has, such as one of another group."""
    first: dict[tuple[int, ...], Hypothesis] = {}
    for one in hypotheses:
        first.setdefault(one.tokens, one)
    return list(first.values())
