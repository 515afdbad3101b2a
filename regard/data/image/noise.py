"""Noise on images, from which a denoiser learns what is under it; all of a batch at once."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.config import Config, NonNegative, NonNegativeFloat, UnitInterval


@dataclass(frozen=True, kw_only=True)
class PixelNoiseConfig(Config):
    """What spoils an image that is to be restored."""

    gaussian: NonNegativeFloat = 0.0
    """Standard deviation of what is added to every value, where black is 0 and white is 1."""
    salt_and_pepper: UnitInterval = 0.0
    """Share of the pixels that become white or black."""
    square: NonNegative = 0
    """Side of a grey square that hides a part of the image, in pixels; 0 for none."""

    @property
    def is_any(self) -> bool:
        """Whether images are corrupted at all."""
        return self != PixelNoiseConfig()


def add_noise(
    images: Tensor, config: PixelNoiseConfig, generator: torch.Generator | None = None
) -> Tensor:
    """Spoil every image, and every frame of a video, in its own way.

    Args:
        images: (..., C, Y, X), from 0 to 1.
        config: What happens.
        generator: Where chance comes from; torch's own on the images' device if not given.

    Returns:
        Images of the same shape, from 0 to 1.
    """
    before, (num_rows, num_columns) = images.shape[:-3], images.shape[-2:]
    device = images.device

    def cover(num: int) -> Tensor:
        """Tell which of `num` lines a square covers, wherever it lies, all inside."""
        last = max(num - config.square, 0)
        starts = torch.randint(last + 1, (*before, 1), generator=generator, device=device)
        lines = torch.arange(num, device=device)
        return (lines >= starts) & (lines < starts + config.square)

    if config.gaussian:
        noise = torch.randn(images.shape, generator=generator, device=device)
        images = (images + config.gaussian * noise).clamp(0, 1)
    if config.salt_and_pepper:
        drawn = torch.rand(
            (*before, 1, num_rows, num_columns), generator=generator, device=device
        )  # (..., 1, Y, X)
        half = config.salt_and_pepper / 2
        images = images.masked_fill(drawn < half, 0.0).masked_fill(drawn >= 1 - half, 1.0)
    if config.square:
        rows, columns = cover(num_rows), cover(num_columns)
        hidden = rows[..., None, :, None] & columns[..., None, None, :]  # (..., 1, Y, X)
        images = images.masked_fill(hidden, 0.5)
    return images


def add_fixed_noise(
    images: Tensor, config: PixelNoiseConfig, names: Sequence[str], *, seed: int
) -> Tensor:
    """Corrupt images reproducibly: the noise of one depends on its name and the seed alone.

    Args:
        images: (B, ..., C, Y, X), from 0 to 1.
        config: What happens.
        names: One each.
        seed: Another seed is other noise.
    """
    if not config.is_any:
        return images
    noisy = []
    for image, name in zip(images.cpu(), names, strict=True):
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
        noisy.append(add_noise(image, config, generator))
    return torch.stack(noisy).to(images.device)
