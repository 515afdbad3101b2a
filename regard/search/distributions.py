"""What a token is drawn from: the model's distribution, flatter, steeper or without its tail.

Each class changes log-probabilities (B·W, V), which need not sum up to one: tokens may have been
forbidden before.
"""

import math
from typing import Protocol

import torch
from torch import Tensor

from regard.search.settings import SearchConfig


class Reshape(Protocol):
    """Changes the distribution that a token is drawn from."""

    def __call__(self, log_probs: Tensor) -> Tensor:
        """Return new log-probabilities (B·W, V), up to a constant a row."""
        ...


class Temperature:
    """Above 1 makes a distribution more even, below 1 steeper."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, log_probs: Tensor) -> Tensor:
        """Divide log-probabilities by the temperature."""
        # The likeliest stays at zero, so that the steepest distribution is still one.
        return (log_probs - log_probs.amax(1, keepdim=True)) / self.temperature


class TopK:
    """Only the k likeliest tokens (Fan et al. 2018); those as likely as the last stay as well."""

    def __init__(self, num: int) -> None:
        self.num = num

    def __call__(self, log_probs: Tensor) -> Tensor:
        """Forbid what is less likely than the k-th."""
        best = log_probs.topk(min(self.num, log_probs.shape[1]), dim=1).values
        return log_probs.masked_fill(log_probs < best[:, -1:], -torch.inf)


class TopP:
    """Only the nucleus: the fewest tokens that have this probability (Holtzman et al. 2020)."""

    def __init__(self, share: float) -> None:
        self.share = share

    def __call__(self, log_probs: Tensor) -> Tensor:
        """Forbid tokens beyond the nucleus; the likeliest always belongs to it."""
        probs = log_probs.log_softmax(1).exp()
        ranked, places = probs.sort(dim=1, descending=True, stable=True)
        is_beyond = ranked.cumsum(1) - ranked >= self.share
        is_beyond[:, 0] = False
        return log_probs.masked_fill(is_beyond.scatter(1, places, is_beyond), -torch.inf)


class MinP:
    """Only tokens with at least this share of the likeliest's probability (Nguyen et al. 2024)."""

    def __init__(self, share: float) -> None:
        self.least = math.log(share)

    def __call__(self, log_probs: Tensor) -> Tensor:
        """Forbid what is too far below the likeliest."""
        lowest = log_probs.amax(1, keepdim=True) + self.least
        return log_probs.masked_fill(log_probs < lowest, -torch.inf)


RESHAPES: dict[str, type[Temperature] | type[TopK] | type[TopP] | type[MinP]] = {
    "temperature": Temperature,
    "top_k": TopK,
    "top_p": TopP,
    "min_p": MinP,
}
"""By the name of their setting, in the order in which they are applied."""

NO_CHANGE = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
"""With these values a distribution stays as it is."""


def build_reshapes(config: SearchConfig) -> list[Reshape]:
    """Return what the settings ask to do with a distribution before a token is drawn."""
    return [
        reshape(getattr(config, name))
        for name, reshape in RESHAPES.items()
        if getattr(config, name) != NO_CHANGE[name]
    ]
