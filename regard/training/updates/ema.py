"""Exponential moving average of the weights of a model."""

import torch
from torch import Tensor, nn


class MovingAverage:
    """Exponential moving average of the trained parameters of a model.

    `apply` puts the averages into the model, and `remove` restores its own weights. Frozen
    parameters and buffers, such as the statistics of batch norms, are those of the model.

    Args:
        model: The model.
        decay: Weight of the average so far in an update, below 1; 0 = no averaging.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self._parameters: dict[str, Tensor] = {
            name: parameter
            for name, parameter in model.named_parameters()
            if decay and parameter.requires_grad
        }
        self._averages = {name: p.detach().clone() for name, p in self._parameters.items()}
        self._weights: list[Tensor] = []  # weights of the model while the averages are applied

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after a step, counted from 1.

        The decay is at most (1 + step) / (10 + step), as the initial weights would have too much
        influence on the averages of the first steps otherwise.
        """
        if self._averages:
            decay = min(self._decay, (1 + step) / (10 + step))
            torch._foreach_lerp_(self._listed, list(self._parameters.values()), 1 - decay)

    @torch.no_grad()
    def apply(self) -> None:
        """Put the averages into the model."""
        if self._averages:
            parameters = list(self._parameters.values())
            self._weights = [parameter.clone() for parameter in parameters]
            torch._foreach_copy_(parameters, self._listed)

    @torch.no_grad()
    def remove(self) -> None:
        """Restore the weights of the model; no effect if the averages are not applied."""
        if self._weights:
            torch._foreach_copy_(list(self._parameters.values()), self._weights)
            self._weights = []

    def state(self) -> dict[str, Tensor]:
        """Return the averages by parameter name; empty without averaging."""
        return self._averages

    def restore(self, averages: dict[str, Tensor]) -> None:
        """Set the averages; those that are missing start from the weights of the model."""
        for name, average in self._averages.items():
            average.copy_(averages.get(name, self._parameters[name].detach()))

    @property
    def _listed(self) -> list[Tensor]:
        return list(self._averages.values())
