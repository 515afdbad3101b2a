"""Fields of media, standardised by the mean and standard deviation of training data."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypedDict, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.core.config import from_dict, to_dict
from regard.core.errors import ConfigError, DataError
from regard.core.files import read_record, write_json
from regard.core.records import shown
from regard.data.decoding import read_items
from regard.data.media import Array

Config = TypeVar("Config", bound=Any)
"""Settings with the properties `spec` (sizes of tensors) and `decoder` (items → arrays)."""


class _Saved(TypedDict):
    config: dict[str, Any]
    mean: list[float]
    std: list[float]


def from_moments(moments: NDArray[np.float64], min_std: float) -> tuple[list[float], list[float]]:
    """Return mean and standard deviation of each channel.

    Args:
        moments: (2, C), means of the values and of their squares.
        min_std: Lower limit of the standard deviation.
    """
    mean, square = moments
    std = np.sqrt(np.maximum(square - mean**2, min_std**2))
    return mean.round(6).tolist(), std.round(6).tolist()


class StandardizedField(Generic[Config]):
    """Items of a medium as one side of an example.

    An item is an array; its length is the number of positions it takes.
    """

    modality: ClassVar[str]
    text: ClassVar[None] = None
    settings: ClassVar[type[Any]]
    """Class of the settings."""
    file: ClassVar[str]
    """File in a run folder with settings, mean and standard deviation; `{}` is the side."""
    channels: ClassVar[str] = "channels"
    """Setting with the number of channels."""
    num_trailing_axes: ClassVar[int] = 2
    """Number of axes after the axis of the channels."""
    num_samples: ClassVar[int]
    """Maximum number of items from which mean and standard deviation are computed."""
    min_std: ClassVar[float] = 0.01
    """Lower limit of the standard deviation, so that near-constant data are not amplified."""

    def __init__(self, config: Config, mean: Sequence[float], std: Sequence[float]) -> None:
        """Build a field.

        Args:
            config: Settings of the field.
            mean: Mean of each channel; in images, black is 0 and white is 1.
            std: Standard deviation of each channel.
        """
        self.config = config
        num = getattr(config, self.channels)
        if not len(mean) == len(std) == num:
            raise ConfigError(
                f"`mean` and `std` must have `{self.channels}` ({num}) values each, "
                f"but have {len(mean)} and {len(std)}."
            )
        if not all(math.isfinite(m) and 0 < s < math.inf for m, s in zip(mean, std, strict=True)):
            raise ConfigError(
                "`mean` must hold finite and `std` positive numbers, but they hold "
                f"{shown(mean)} and {shown(std)}."
            )
        self.mean, self.std = tuple(mean), tuple(std)
        self._statistics: dict[torch.device, tuple[Tensor, Tensor]] = {}

    @classmethod
    def fit(cls, config: Config, references: Sequence[str]) -> Self:
        """Return a field with the mean and standard deviation of training items.

        Args:
            config: Settings of the field.
            references: Training items; statistics are those of at most `num_samples` of them.
        """
        decoder = config.decoder
        if not references:
            raise DataError(f"There is no {decoder.medium.name} to learn from.")
        order = np.random.default_rng(0).permutation(len(references))
        sampled = [references[row] for row in order[: cls.num_samples]]
        # With a cache, all items are decoded now, since training will need them.
        decoded = references if decoder.row else sampled
        arrays = dict(zip(decoded, read_items(decoded, decoder), strict=True))
        sums, num = np.zeros((2, getattr(config, cls.channels))), 0
        for reference in sampled:
            values, weight = cls.moments(arrays[reference])
            sums += values
            num += weight
        return cls(config, *from_moments(sums / num, cls.min_std))

    @staticmethod
    def moments(item: Array) -> tuple[Any, int]:
        """Return sums or means of values and of squared values per channel, and their weight."""
        pixels = item.reshape(-1, *item.shape[-3:]).astype(np.float64) / 255  # (F, C, Y, X)
        return (pixels.mean((0, 2, 3)), (pixels**2).mean((0, 2, 3))), 1

    @property
    def spec(self) -> Any:
        """Input specification of encoders: the sizes of the tensors."""
        return self.config.spec

    def read_all(self, references: Sequence[str]) -> list[Array]:
        """Decode items, each distinct reference once."""
        return read_items(references, self.config.decoder)

    def stack(self, items: Sequence[Array]) -> tuple[Tensor, Tensor]:
        """Stack items of one position each.

        Returns:
            The values (B, ...), as 8-bit integers, and the mask (B, 1), all True.
        """
        return torch.from_numpy(np.concatenate(items)), torch.ones(len(items), 1, dtype=torch.bool)

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Convert stacked values to the inputs of an encoder, on the same device.

        Args:
            values: Values as `stack` returns them.
            is_training: Whether to augment the values.
        """
        return self.standardize(values.float() / 255)

    def standardize(self, values: Tensor) -> Tensor:
        """Subtract the mean and divide by the standard deviation."""
        mean, std = self.statistics(values.device)
        return (values - mean) / std

    def statistics(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation on a device, copied to it only once."""
        if device not in self._statistics:
            shape = (-1, *[1] * self.num_trailing_axes)
            mean, std = (torch.tensor(values, device=device) for values in (self.mean, self.std))
            self._statistics[device] = mean.view(shape), std.view(shape)
        return self._statistics[device]

    def shorten(self, item: Array, max_length: int) -> Array:
        """Return an item unchanged, since it takes one position."""
        return item

    def save(self, folder: Path, side: str) -> None:
        """Write settings, mean and standard deviation into a run folder."""
        value = {"config": to_dict(self.config), "mean": self.mean, "std": self.std}
        write_json(folder / self.file.format(side), value)

    @classmethod
    def load(cls, folder: Path, side: str = "source") -> Self:
        """Load a field that `save` wrote."""
        value = read_record(folder / cls.file.format(side), _Saved)
        return cls(from_dict(cls.settings, value["config"]), value["mean"], value["std"])
