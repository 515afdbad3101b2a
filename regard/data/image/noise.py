"""Noise on image batches, for denoising."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.config import Config, NonNegative, NonNegativeFloat, UnitInterval


@dataclass(frozen=True, kw_only=True)
class PixelNoiseConfig(Config):
    """Noise on the input images of a denoiser."""

    gaussian: NonNegativeFloat = 0.0
    """Standard deviation of Gaussian noise, where black is 0 and white is 1."""
    salt_and_pepper: UnitInterval = 0.0
    """Share of the pixels that become white or black."""
    square: NonNegative = 0
    """Side of a grey square that covers a part of the image, in pixels; 0 for none."""

    @property
    def is_any(self) -> bool:
        """Whether there is any noise."""
        return self != PixelNoiseConfig()


def add_noise(
    images: Tensor, config: PixelNoiseConfig, generator: torch.Generator | None = None
) -> Tensor:
    """Add independent noise to every image, and to every frame of a video.

    Args:
        images: (..., C, Y, X), from 0 to 1.
        config: Kinds and amounts of noise.
        generator: Random generator; torch's default of the images' device if not given.

    Returns:
        Images of the same shape, from 0 to 1.
    """
    leading, (num_rows, num_columns) = images.shape[:-3], images.shape[-2:]
    device = images.device

    def cover(num: int) -> Tensor:
        """Sample which of `num` rows or columns a square covers."""
        last = max(num - config.square, 0)
        starts = torch.randint(last + 1, (*leading, 1), generator=generator, device=device)
        lines = torch.arange(num, device=device)
        return (lines >= starts) & (lines < starts + config.square)

    if config.gaussian:
        noise = torch.randn(images.shape, generator=generator, device=device)
        images = (images + config.gaussian * noise).clamp(0, 1)
    if config.salt_and_pepper:
        uniforms = torch.rand(
            (*leading, 1, num_rows, num_columns), generator=generator, device=device
        )  # (..., 1, Y, X)
        half = config.salt_and_pepper / 2
        images = images.masked_fill(uniforms < half, 0.0).masked_fill(uniforms >= 1 - half, 1.0)
    if config.square:
        rows, columns = cover(num_rows), cover(num_columns)
        is_covered = rows[..., None, :, None] & columns[..., None, None, :]  # (..., 1, Y, X)
        images = images.masked_fill(is_covered, 0.5)
    return images


def add_fixed_noise(
    images: Tensor, config: PixelNoiseConfig, names: Sequence[str], *, seed: int
) -> Tensor:
    """Add reproducible noise, a function of each image's name and the seed.

    Args:
        images: (B, ..., C, Y, X), from 0 to 1.
        config: Kinds and amounts of noise.
        names: Name of each image.
        seed: Random seed.
    """
    if not config.is_any:
        return images
    noisy = []
    for image, name in zip(images.cpu(), names, strict=True):
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
        noisy.append(add_noise(image, config, generator))
    return torch.stack(noisy).to(images.device)
