"""Standardised fields: items of a medium, brought to the mean and deviation of training data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.core.config import from_dict, to_dict
from regard.core.errors import ConfigError, DataError
from regard.core.files import read_json, write_json
from regard.data.decoding import read_items
from regard.data.media import Array

Config = TypeVar("Config", bound=Any)
"""Settings with the properties `spec`, sizes of tensors, and `decoder`, items → arrays."""


def from_moments(moments: NDArray[np.float64], least: float) -> tuple[list[float], list[float]]:
    """Return mean and deviation from the means of values and of their squares, (2, C).

    Args:
        moments: As measured.
        least: A deviation that none is below.
    """
    mean, square = moments
    std = np.sqrt(np.maximum(square - mean**2, least**2))
    return mean.round(6).tolist(), std.round(6).tolist()


class StandardizedField(Generic[Config]):
    """Items of a medium as one side of an example.

    An item is an array whose length is the number of positions that it takes.
    """

    modality: ClassVar[str]
    text: ClassVar[None] = None
    settings: ClassVar[type[Any]]
    """The class of the settings."""
    file: ClassVar[str]
    """The file in a run folder with settings, mean and deviation; `{}` is the side."""
    channels: ClassVar[str] = "channels"
    """The setting that says how many means there are."""
    num_after: ClassVar[int] = 2
    """Axes after that of the channels."""
    num_samples: ClassVar[int]
    """Items from which mean and deviation are computed, at most."""
    min_deviation: ClassVar[float] = 0.01
    """Items that are all alike must not be blown up."""

    def __init__(self, config: Config, mean: Sequence[float], std: Sequence[float]) -> None:
        """Build a field.

        Args:
            config: How items are read.
            mean: Of each channel; in images, black is 0 and white is 1.
            std: Standard deviation of each channel, likewise.
        """
        self.config = config
        num = getattr(config, self.channels)
        if not len(mean) == len(std) == num:
            raise ConfigError(
                f"`mean` and `std` must have `{self.channels}` ({num}) values each, "
                f"but have {len(mean)} and {len(std)}."
            )
        self.mean, self.std = tuple(mean), tuple(std)
        self._statistics: dict[torch.device, tuple[Tensor, Tensor]] = {}

    @classmethod
    def fit(cls, config: Config, references: Sequence[str]) -> Self:
        """Return a field with the mean and the deviation of training items.

        Args:
            config: How items are read.
            references: The training items. Of many, a sample is measured.
        """
        decoder = config.decoder
        if not references:
            raise DataError(f"There is no {decoder.medium.name} to learn from.")
        order = np.random.default_rng(0).permutation(len(references))
        chosen = [references[row] for row in order[: cls.num_samples]]
        # What is cached is decoded as a whole, since it will be read as a whole.
        named = references if decoder.row else chosen
        arrays = dict(zip(named, read_items(named, decoder), strict=True))
        sums, num = np.zeros((2, getattr(config, cls.channels))), 0
        for reference in chosen:
            values, weight = cls.moments(arrays[reference])
            sums += values
            num += weight
        return cls(config, *from_moments(sums / num, cls.min_deviation))

    @staticmethod
    def moments(item: Array) -> tuple[Any, int]:
        """Return sums, or means, of values and of their squares by channel, and their weight."""
        pixels = item.reshape(-1, *item.shape[-3:]).astype(np.float64) / 255  # (F, C, Y, X)
        return (pixels.mean((0, 2, 3)), (pixels**2).mean((0, 2, 3))), 1

    @property
    def spec(self) -> Any:
        """The sizes of the tensors, which an encoder is built for."""
        return self.config.spec

    def read_all(self, references: Sequence[str]) -> list[Array]:
        """Read items, each once however often it is named."""
        return read_items(references, self.config.decoder)

    def stack(self, items: Sequence[Array]) -> tuple[Tensor, Tensor]:
        """Put items together that take one position each.

        Returns:
            The values (B, ...), still in 8 bits, and the mask (B, 1), all True.
        """
        return torch.from_numpy(np.concatenate(items)), torch.ones(len(items), 1, dtype=torch.bool)

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Turn stacked values into what an encoder takes, on the device where they are.

        Args:
            values: As `stack` returns them.
            is_training: Whether they may be augmented.
        """
        return self.standardise(values.float() / 255)

    def standardise(self, values: Tensor) -> Tensor:
        """Bring values to mean 0 and deviation 1."""
        mean, std = self.statistics(values.device)
        return (values - mean) / std

    def statistics(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return mean and deviation on a device; moving them at every step would wait for it."""
        if device not in self._statistics:
            shape = (-1, *[1] * self.num_after)
            mean, std = (torch.tensor(values, device=device) for values in (self.mean, self.std))
            self._statistics[device] = mean.view(shape), std.view(shape)
        return self._statistics[device]

    def shorten(self, item: Array, most: int) -> Array:
        """Return an item as it is: it takes one position."""
        return item

    def save(self, folder: Path, side: str) -> None:
        """Write settings, mean and deviation into a run folder."""
        value = {"config": to_dict(self.config), "mean": self.mean, "std": self.std}
        write_json(folder / self.file.format(side), value)

    @classmethod
    def load(cls, folder: Path, side: str = "source") -> Self:
        """Read what `save` wrote."""
        value = read_json(folder / cls.file.format(side))
        return cls(from_dict(cls.settings, value["config"]), value["mean"], value["std"])
