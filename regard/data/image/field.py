"""Images as a source: settings, and the field that reads, stacks and standardises them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.core.config import at_least, from_dict, to_dict
from regard.core.errors import ConfigError, DataError
from regard.core.files import read_json, write_json
from regard.data.example import Example
from regard.data.image.augment import AugmentationConfig, augment
from regard.data.image.builtin import split_reference
from regard.data.image.decoding import decode
from regard.data.image.io import MAX_PIXELS
from regard.data.image.io import open_image as open_image
from regard.data.image.resize import Fit, Frame, Pixels
from regard.data.skipping import tell_skipped
from regard.data.standardize import Standard, from_moments

IMAGE = "{}.image.json"
"""The file in a run folder that says how a side's images are brought into one form."""

NUM_SAMPLES = 5_000
"""Images that mean and deviation are taken from at most."""

MIN_DEVIATION = 0.01
"""Images that are all alike must not be blown up."""


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """How images are read."""

    kind: Literal["image"] = "image"
    """Images."""
    size: int = 32
    """Rows, and columns, that every image is brought to, in pixels."""
    channels: Literal[1, 3] = 3
    """1 for grey, 3 for colour."""
    fit: Fit = "crop"
    """What becomes of an image that is no square: cut at its longer sides, filled up with grey at
    its shorter ones, or squashed."""
    max_pixels: int = MAX_PIXELS
    """Pixels that a file may hold; a larger image is refused before it is decoded."""
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    """What may happen to an image while training."""

    def __post_init__(self) -> None:
        at_least("size", self.size, 1)
        at_least("max_pixels", self.max_pixels, 1)
        for name in ("crop", "cutout"):
            value = getattr(self.augmentation, name)
            if value >= self.size:
                raise ConfigError(
                    f"`augmentation.{name}` must be smaller than `size` ({self.size}), "
                    f"but is {value}."
                )

    @property
    def frame(self) -> Frame:
        """What every image becomes before it is stacked."""
        return Frame(self.size, self.channels, self.fit, self.max_pixels)


class ImageField:
    """Images as one side of an example.

    An item is one image, (1, C, Y, X) in 8 bits: its length is 1, because it counts as one
    position of a batch.
    """

    def __init__(self, config: ImageConfig, mean: Sequence[float], std: Sequence[float]) -> None:
        """Take up what was learned.

        Args:
            config: How images are read.
            mean: Of each channel, where black is 0 and white is 1.
            std: Standard deviation of each channel, likewise.
        """
        self.config = config
        self._standard = Standard(mean, std, num=config.channels, name="channels", num_after=2)
        self.mean, self.std = self._standard.mean, self._standard.std

    @classmethod
    def learn(cls, config: ImageConfig, references: Sequence[str]) -> "ImageField":
        """Return a field with the mean and the deviation of training images.

        Args:
            config: How images are read.
            references: The training images. Of many, a sample is measured.
        """
        if not references:
            raise DataError("There is no image to learn from.")
        unmeasured = cls(config, (0.0,) * config.channels, (1.0,) * config.channels)
        items = unmeasured.read_all(references)
        chosen = np.random.default_rng(0).permutation(len(items))[:NUM_SAMPLES]
        sums = np.zeros((2, config.channels))
        for row in chosen:
            pixels = items[row][0].astype(np.float64) / 255  # (C, Y, X)
            sums += pixels.mean((1, 2)), (pixels**2).mean((1, 2))
        return cls(config, *from_moments(sums / len(chosen), MIN_DEVIATION))

    @property
    def size(self) -> tuple[int, int, int]:
        """Channels, rows and columns of every image."""
        return self.config.channels, self.config.size, self.config.size

    def read_all(self, references: Sequence[str]) -> list[Pixels]:
        """Read images, each as (1, C, Y, X); items are views of one array, not copies."""
        decoded = decode(references, self.config.frame)
        if decoded.failures:
            raise DataError(next(iter(decoded.failures.values())))
        return [decoded.images[reference] for reference in references]

    def stack(self, items: Sequence[NDArray[np.uint8]]) -> tuple[Tensor, Tensor]:
        """Put images together.

        Returns:
            The images (B, C, Y, X), still in 8 bits, and the mask (B, 1), all True.
        """
        return torch.from_numpy(np.concatenate(items)), torch.ones(len(items), 1, dtype=torch.bool)

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Turn stacked images into what an encoder takes, on the device where they are.

        Args:
            values: (B, C, Y, X), in 8 bits.
            is_training: Whether images are augmented before they are standardised.
        """
        images = values.float() / 255
        if is_training:
            images = augment(images, self.config.augmentation)
        return self.standardise(images)

    def standardise(self, images: Tensor) -> Tensor:
        """Bring images from 0 to 1, (..., C, Y, X), to mean 0 and deviation 1."""
        mean, std = self._standard.on(images.device)
        return (images - mean) / std

    def shorten(self, item: Pixels, most: int) -> Pixels:
        """Return an item as it is: an image takes one position."""
        return item

    def save(self, folder: Path, side: str) -> None:
        """Write settings, mean and deviation into a run folder."""
        value = {"config": to_dict(self.config), "mean": self.mean, "std": self.std}
        write_json(folder / IMAGE.format(side), value)

    @classmethod
    def load(cls, path: Path) -> "ImageField":
        """Read what `save` wrote."""
        value = read_json(path)
        return cls(from_dict(ImageConfig, value["config"]), value["mean"], value["std"])


def keep_readable(
    examples: Sequence[Example],
    config: ImageConfig,
    *,
    reference: Callable[[Example], str] = lambda example: str(example.source),
) -> list[Example]:
    """Drop the examples whose image cannot be read, and say how many and which was the first.

    Called once before training, so that no epoch ends half-way.

    Args:
        examples: With an image each.
        config: How images are read.
        reference: Where the image stands in an example.
    """
    # Numbered pictures have no file that could be bad.
    files = (name for name in map(reference, examples) if split_reference(name) is None)
    failures = decode(files, config.frame).failures
    kept = [example for example in examples if reference(example) not in failures]
    tell_skipped("image", failures.values(), num_kept=len(kept), num_asked=len(examples))
    return kept
