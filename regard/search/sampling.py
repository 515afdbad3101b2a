"""Ancestral sampling with temperature, top-k, top-p, min-p and typical sampling."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from regard.core.device import sum_dtype
from regard.search.greedy import generate
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
    sample_keys: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Sample targets token by token.

    Random numbers depend on the seed, the key of the sentence, the index of the sample and the
    step only: not on the other sentences of the batch, nor on the number of samples.
    Log-probabilities are those of the scorer, before temperature and filters.

    Args:
        scorer: Scorer of next tokens.
        start: The start token.
        end: The end token.
        max_lengths: (B,) maximum number of tokens of each sentence.
        config: Temperature, filters and seed.
        num_samples: Number of samples per sentence.
        sample_keys: Key of each sentence for its random numbers; its index in the batch if None.

    Returns:
        The samples of each sentence in the order of sampling; they may be equal.
    """
    keys = range(scorer.batch) if sample_keys is None else sample_keys
    seeds = [(config.seed, key, index) for key in keys for index in range(num_samples)]
    noise = torch.stack([_noise(seed, int(max_lengths.max())) for seed in seeds])  # (B·W, T)
    noise = noise.to(scorer.device, sum_dtype(scorer.device))
    sampler = _Sampler(noise, build_filters(config))
    samples = generate(
        scorer, sampler, start=start, end=end, max_lengths=max_lengths, width=num_samples
    )
    return [samples[row : row + num_samples] for row in range(0, len(samples), num_samples)]


@dataclass(frozen=True)
class _Sampler:
    """Inverse transform sampling: the token whose cumulative probability exceeds the noise."""

    noise: Tensor  # (B·W, T) uniform in [0, 1)
    filters: Sequence[Callable[[Tensor], Tensor]]

    def __call__(self, log_probs: Tensor, step: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        filtered = log_probs
        for change in self.filters:
            filtered = change(filtered)
        # The sum over a large vocabulary is imprecise in float32.
        precise = filtered.to(sum_dtype(filtered.device))
        cumulative = precise.log_softmax(1).exp().cumsum(1)  # (B·W, V)
        thresholds = self.noise[rows, step, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, thresholds, right=True)  # (B·W, 1)
        # In float32, noise next to 1 is rounded to 1.
        tokens = tokens.clamp(max=log_probs.shape[1] - 1)
        return log_probs.gather(1, tokens).squeeze(1), tokens.squeeze(1)


def _noise(seed: Sequence[int], length: int) -> Tensor:
    """Sample one uniform number per step. A longer row starts with the shorter one."""
    return torch.from_numpy(np.random.default_rng(seed).random(length))


def scale(log_probs: Tensor, value: float) -> Tensor:
    """Divide log-probabilities (B·W, V) by the temperature.

    The maximum is subtracted first, so that very low temperatures do not underflow.
    """
    smallest = torch.finfo(log_probs.dtype).tiny  # less would be rounded to 0
    return (log_probs - log_probs.amax(1, keepdim=True)) / max(value, smallest)


def keep_top_k(log_probs: Tensor, value: int) -> Tensor:
    """Keep the `value` most likely tokens (top-k, Fan et al. 2018), and ties with the last."""
    best = log_probs.topk(min(value, log_probs.shape[1]), dim=1).values
    return log_probs.masked_fill(log_probs < best[:, -1:], -torch.inf)


def keep_top_p(log_probs: Tensor, value: float) -> Tensor:
    """Keep the smallest set of tokens with probability `value` (top-p, Holtzman et al. 2020).

    The most likely token is always kept.
    """
    probs = log_probs.log_softmax(1).exp()
    ranked, order = probs.sort(dim=1, descending=True, stable=True)
    is_beyond = ranked.cumsum(1) - ranked >= value
    is_beyond[:, 0] = False
    return log_probs.masked_fill(is_beyond.scatter(1, order, is_beyond), -torch.inf)


def keep_min_p(log_probs: Tensor, value: float) -> Tensor:
    """Keep tokens with at least `value` times the maximum probability (Nguyen et al. 2024)."""
    lowest = log_probs.amax(1, keepdim=True) + math.log(value)
    return log_probs.masked_fill(log_probs < lowest, -torch.inf)


def keep_typical(log_probs: Tensor, value: float) -> Tensor:
    """Keep the smallest set of typical tokens with probability `value` (Meister et al. 2023).

    Typical tokens are those whose information, -log p, is nearest to the entropy of the
    distribution. The most typical token is always kept.
    """
    normalised = log_probs.log_softmax(1)
    probs = normalised.exp()
    information = -normalised.clamp(min=torch.finfo(normalised.dtype).min)
    entropy = (probs * information).sum(1, keepdim=True)
    # Impossible tokens come last.
    distance = (information - entropy).abs().masked_fill(probs == 0, torch.inf)
    order = distance.argsort(dim=1, stable=True)
    ranked = probs.gather(1, order)
    is_beyond = ranked.cumsum(1) - ranked >= value
    is_beyond[:, 0] = False
    return log_probs.masked_fill(is_beyond.scatter(1, order, is_beyond), -torch.inf)


FILTERS: dict[str, tuple[Callable[..., Tensor], float]] = {
    "temperature": (scale, 1.0),
    "top_k": (keep_top_k, 0),
    "top_p": (keep_top_p, 1.0),
    "min_p": (keep_min_p, 0.0),
    "typical_p": (keep_typical, 1.0),
}
"""Filters of log-probabilities (B·W, V) before sampling, by setting name, in the order of
application, with the value that has no effect. Their output is not normalised."""


def build_filters(config: SearchConfig) -> list[Callable[[Tensor], Tensor]]:
    """Return the filters of log-probabilities that the settings enable."""
    values = {name: getattr(config, name) for name in FILTERS}
    return [
        partial(change, value=values[name])
        for name, (change, neutral) in FILTERS.items()
        if values[name] != neutral
    ]
