"""Ancestral sampling: every token is drawn from the model's distribution, or a part of it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from regard.search.greedy import walk
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig


def sample(
    scorer: Scorer,
    *,
    start: int,
    end: int,
    max_lengths: Tensor,
    config: SearchConfig,
    num_samples: int = 1,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Draw targets token by token.

    A draw depends on the seed, the sentence's own number, the number of the sample and the step,
    and on nothing else: not on the sentences beside it, and the first samples are the same
    however many are asked for. Log-probabilities are the scorer's, not those of the distribution
    after temperature and cuts.

    Args:
        scorer: What gives log-probabilities.
        start: The start token.
        end: The end token.
        max_lengths: (B,) most tokens of each sentence.
        config: The temperature, what is cut off, and the seed.
        num_samples: How many targets to draw a sentence.
        numbers: What tells the sentences apart, from 0 on; their places in the batch if not given.

    Returns:
        For each sentence its samples as they were drawn; the same target may come twice.
    """
    chosen = range(scorer.batch) if numbers is None else numbers
    seeds = [(config.seed, number, place) for number in chosen for place in range(num_samples)]
    noise = torch.stack([_noise(seed, int(max_lengths.max())) for seed in seeds])  # (B·W, T)
    draw = _Draw(noise.to(scorer.device), build_filters(config))
    found = walk(scorer, draw, start=start, end=end, max_lengths=max_lengths, width=num_samples)
    return [found[row : row + num_samples] for row in range(0, len(found), num_samples)]


@dataclass(frozen=True)
class _Draw:
    """Chooses the token at which the cumulated probability passes a number drawn before."""

    noise: Tensor  # (B·W, T) from 0 up to, but without, 1
    filters: Sequence[Callable[[Tensor], Tensor]]

    def __call__(self, log_probs: Tensor, step: int) -> tuple[Tensor, Tensor]:
        shaped = log_probs
        for change in self.filters:
            shaped = change(shaped)
        # In single precision, the sum over a large vocabulary would be too coarse.
        reached = shaped.double().log_softmax(1).exp().cumsum(1)  # (B·W, V)
        heights = self.noise[:, step, None] * reached[:, -1:]
        tokens = torch.searchsorted(reached, heights, right=True)  # (B·W, 1)
        return log_probs.gather(1, tokens).squeeze(1), tokens.squeeze(1)


def _noise(seed: Sequence[int], length: int) -> Tensor:
    """Draw one number a step; a longer row begins with the shorter one."""
    return torch.from_numpy(np.random.default_rng(seed).random(length))


def scale(log_probs: Tensor, value: float) -> Tensor:
    """Divide log-probabilities (B·W, V) by the temperature: above 1 makes them more even.

    The likeliest stays at zero, so that the steepest distribution is still one.
    """
    return (log_probs - log_probs.amax(1, keepdim=True)) / value


def keep_top_k(log_probs: Tensor, value: int) -> Tensor:
    """Forbid tokens less likely than the `value`-th (Fan et al. 2018); ties are kept."""
    best = log_probs.topk(min(value, log_probs.shape[1]), dim=1).values
    return log_probs.masked_fill(log_probs < best[:, -1:], -torch.inf)


def keep_top_p(log_probs: Tensor, value: float) -> Tensor:
    """Forbid tokens beyond the fewest that have probability `value` (Holtzman et al. 2020).

    The likeliest token is always kept.
    """
    probs = log_probs.log_softmax(1).exp()
    ranked, order = probs.sort(dim=1, descending=True, stable=True)
    is_beyond = ranked.cumsum(1) - ranked >= value
    is_beyond[:, 0] = False
    return log_probs.masked_fill(is_beyond.scatter(1, order, is_beyond), -torch.inf)


def keep_min_p(log_probs: Tensor, value: float) -> Tensor:
    """Forbid tokens below this share of the likeliest's probability (Nguyen et al. 2024)."""
    lowest = log_probs.amax(1, keepdim=True) + math.log(value)
    return log_probs.masked_fill(log_probs < lowest, -torch.inf)


FILTERS: dict[str, tuple[Callable[..., Tensor], float]] = {
    "temperature": (scale, 1.0),
    "top_k": (keep_top_k, 0),
    "top_p": (keep_top_p, 1.0),
    "min_p": (keep_min_p, 0.0),
}
"""What changes log-probabilities (B·W, V), up to a constant a row, before a token is drawn: by the
name of the setting, in the order of application, with the value that changes nothing."""


def build_filters(config: SearchConfig) -> list[Callable[[Tensor], Tensor]]:
    """Return what the settings do to log-probabilities before a token is drawn."""
    values = {name: getattr(config, name) for name in FILTERS}
    return [
        partial(change, value=values[name])
        for name, (change, neutral) in FILTERS.items()
        if values[name] != neutral
    ]
