"""Mean and deviation that training data had: what images and recordings are standardised by."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.core.errors import ConfigError


class Standard:
    """A mean and a deviation for each channel or mel bin, on whatever device they are asked for.

    Args:
        mean: Of each.
        std: Standard deviation of each.
        num: How many there must be.
        name: The setting that says how many.
        num_after: Axes that come after that of the channels.
    """

    def __init__(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        *,
        num: int,
        name: str,
        num_after: int = 0,
    ) -> None:
        if not len(mean) == len(std) == num:
            raise ConfigError(
                f"`mean` and `std` must have `{name}` ({num}) values each, "
                f"but have {len(mean)} and {len(std)}."
            )
        self.mean, self.std = tuple(mean), tuple(std)
        self._shape = (-1, *[1] * num_after)
        self._found: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def on(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return mean and deviation on a device; moving them at every step would wait for it."""
        if device not in self._found:
            mean, std = (
                torch.tensor(values, device=device).view(self._shape)
                for values in (self.mean, self.std)
            )
            self._found[device] = mean, std
        return self._found[device]


def from_moments(moments: NDArray[np.float64], least: float) -> tuple[list[float], list[float]]:
    """Return mean and deviation from the means of values and of their squares, (2, C).

    Args:
        moments: As measured.
        least: A deviation that none is below.
    """
    mean, square = moments
    std = np.sqrt(np.maximum(square - mean**2, least**2))
    return mean.round(6).tolist(), std.round(6).tolist()
