"""Images changed at random while training, each in its own way, all of a batch at once."""

from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional

from regard.core.config import Config, NonNegative, UnitInterval, Within

_GREY = (0.299, 0.587, 0.114)
"""How much red, green and blue weigh in what the eye takes for brightness (ITU-R 601)."""


@dataclass(frozen=True, kw_only=True)
class AugmentationConfig(Config):
    """What may happen to an image while training."""

    crop: NonNegative = 0
    """Pixels by which an image is shifted at most, what comes in being mirrored; 0 for none."""
    zoom: Annotated[float, Within(0.0, 0.9)] = 0.0
    """Share of each side that may be cut away, what is left being drawn larger; 0 for none."""
    flip: bool = False
    """Whether every other image is seen in a mirror; not where left and right matter."""
    colour: UnitInterval = 0.0
    """How far brightness, contrast and saturation vary around 1; 0 for none."""
    cutout: NonNegative = 0
    """Side of a square that is painted over with the image's mean colour; 0 for none."""


def augment(images: Tensor, config: AugmentationConfig) -> Tensor:
    """Change every image in its own way; the chance is torch's own on the images' device.

    Args:
        images: (B, C, Y, X), from 0 to 1.
        config: What may happen.

    Returns:
        Images of the same shape, from 0 to 1.
    """
    if config.crop:
        images = _shift(images, config.crop, _sample_offsets(images, config.crop))
    if config.zoom:
        images = _zoom(images, config.zoom)
    if config.flip:
        images = _mirror(images, _sample_mirrored(images))
    if config.colour:
        images = _change_colour(images, config.colour)
    if config.cutout:
        images = _cut_out(images, config.cutout)
    return images


def augment_pairs(
    sources: Tensor, targets: Tensor, config: AugmentationConfig
) -> tuple[Tensor, Tensor]:
    """Change every source in its own way; what moves it moves its target alike.

    Args:
        sources: (B, C, Y, X), from 0 to 1.
        targets: (B, C, Y, X), from 0 to 1, of another shape maybe; where sources are shifted, of
            their size.
        config: What may happen, but zooming.

    Returns:
        Both, of the same shapes.
    """
    if config.crop:
        offsets = _sample_offsets(sources, config.crop)
        sources, targets = (_shift(side, config.crop, offsets) for side in (sources, targets))
    if config.flip:
        is_mirrored = _sample_mirrored(sources)
        sources, targets = (_mirror(side, is_mirrored) for side in (sources, targets))
    return augment(sources, replace(config, crop=0, flip=False)), targets


def _sample_offsets(images: Tensor, most: int) -> Tensor:
    return torch.randint(2 * most + 1, (2, len(images), 1, 1), device=images.device)


def _sample_mirrored(images: Tensor) -> Tensor:
    return torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5


def _mirror(images: Tensor, is_mirrored: Tensor) -> Tensor:
    return torch.where(is_mirrored, images.flip(-1), images)


def _shift(images: Tensor, most: int, offsets: Tensor) -> Tensor:
    """Pad by mirroring and cut the old size out at a random place (He et al. 2016, 4.2)."""
    num, _, height, width = images.shape
    device = images.device
    padded = functional.pad(images, (most,) * 4, mode="reflect")
    rows = offsets[0] + torch.arange(height, device=device)[:, None]  # (B, Y, 1)
    columns = offsets[1] + torch.arange(width, device=device)  # (B, 1, X)
    numbers = torch.arange(num, device=device)[:, None, None]
    return padded[numbers, :, rows, columns].permute(0, 3, 1, 2)  # (B, C, Y, X)


def _zoom(images: Tensor, most: float) -> Tensor:
    """Cut a part out at a random place and draw it as large as the whole (Szegedy et al. 2015)."""
    # Places run from -1 to 1. Rows and columns shrink apart, so that shapes are stretched, too.
    kept = 1 - most * torch.rand(len(images), 2, device=images.device)  # (B, 2)
    centres = (1 - kept) * (2 * torch.rand_like(kept) - 1)
    maps = torch.cat([torch.diag_embed(kept), centres[..., None]], dim=-1)  # (B, 2, 3)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _change_colour(images: Tensor, most: float) -> Tensor:
    shape = (3, len(images), 1, 1, 1)
    brightness, contrast, saturation = 1 + most * (2 * torch.rand(shape, device=images.device) - 1)
    images = (images * brightness).clamp(0, 1)
    images = _blend(images, to_grey(images).mean((2, 3), keepdim=True), contrast)
    return _blend(images, to_grey(images), saturation)


def _blend(images: Tensor, others: Tensor, share: Tensor) -> Tensor:
    return (share * images + (1 - share) * others).clamp(0, 1)


def to_grey(images: Tensor) -> Tensor:
    """Return how bright the pixels are, (B, 1, Y, X)."""
    if images.size(1) == 1:
        return images
    weights = torch.tensor(_GREY, device=images.device).view(3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def _cut_out(images: Tensor, side: int) -> Tensor:
    """Paint over a square around a random pixel, inside the image or partly (DeVries 2017)."""
    num, _, height, width = images.shape
    device = images.device
    tops = torch.randint(height, (num, 1, 1, 1), device=device) - side // 2
    lefts = torch.randint(width, (num, 1, 1, 1), device=device) - side // 2
    rows = torch.arange(height, device=device)[:, None]
    columns = torch.arange(width, device=device)
    is_cut = (rows >= tops) & (rows < tops + side) & (columns >= lefts) & (columns < lefts + side)
    return torch.where(is_cut, images.mean((2, 3), keepdim=True), images)
