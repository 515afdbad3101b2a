"""Random augmentation of image batches in training."""

from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional

from regard.core.config import Config, NonNegative, UnitInterval, Within

_GREY = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in perceived brightness (ITU-R 601)."""


@dataclass(frozen=True, kw_only=True)
class AugmentationConfig(Config):
    """Settings of image augmentation in training."""

    crop: NonNegative = 0
    """Maximum shift in pixels, with reflection padding; 0 for none."""
    zoom: Annotated[float, Within(0.0, 0.9)] = 0.0
    """Maximum share of each side that is cropped before resizing to full size; 0 for none."""
    flip: bool = False
    """Whether images are flipped horizontally with probability 0.5."""
    colour: UnitInterval = 0.0
    """Maximum deviation of brightness, contrast and saturation from 1; 0 for none."""
    cutout: NonNegative = 0
    """Side of a square that is filled with the image's mean colour; 0 for none."""


def augment(images: Tensor, config: AugmentationConfig) -> Tensor:
    """Augment each image independently, with torch's random generator of the images' device.

    Args:
        images: (B, C, Y, X), from 0 to 1.
        config: Settings of the augmentation.

    Returns:
        Images of the same shape, from 0 to 1.
    """
    if config.crop:
        images = _shift(images, config.crop, _sample_offsets(images, config.crop))
    if config.zoom:
        images = _zoom(images, config.zoom)
    if config.flip:
        images = _flip(images, _sample_flips(images))
    if config.colour:
        images = _change_colour(images, config.colour)
    if config.cutout:
        images = _cut_out(images, config.cutout)
    return images


def augment_pairs(
    sources: Tensor, targets: Tensor, config: AugmentationConfig
) -> tuple[Tensor, Tensor]:
    """Augment each source independently; apply shifts and flips to its target, too.

    Args:
        sources: (B, C, Y, X), from 0 to 1.
        targets: (B, C, Y, X), from 0 to 1, possibly of another shape; with `crop`, of the same
            height and width.
        config: Settings of the augmentation, without `zoom`.

    Returns:
        Sources and targets of the same shapes.
    """
    if config.crop:
        offsets = _sample_offsets(sources, config.crop)
        sources, targets = (_shift(side, config.crop, offsets) for side in (sources, targets))
    if config.flip:
        is_flipped = _sample_flips(sources)
        sources, targets = (_flip(side, is_flipped) for side in (sources, targets))
    return augment(sources, replace(config, crop=0, flip=False)), targets


def _sample_offsets(images: Tensor, max_shift: int) -> Tensor:
    return torch.randint(2 * max_shift + 1, (2, len(images), 1, 1), device=images.device)


def _sample_flips(images: Tensor) -> Tensor:
    return torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5


def _flip(images: Tensor, is_flipped: Tensor) -> Tensor:
    return torch.where(is_flipped, images.flip(-1), images)


def _shift(images: Tensor, max_shift: int, offsets: Tensor) -> Tensor:
    """Pad by reflection and crop the original size at random offsets (He et al. 2016, 4.2)."""
    num, _, height, width = images.shape
    device = images.device
    padded = functional.pad(images, (max_shift,) * 4, mode="reflect")
    rows = offsets[0] + torch.arange(height, device=device)[:, None]  # (B, Y, 1)
    columns = offsets[1] + torch.arange(width, device=device)  # (B, 1, X)
    numbers = torch.arange(num, device=device)[:, None, None]
    return padded[numbers, :, rows, columns].permute(0, 3, 1, 2)  # (B, C, Y, X)


def _zoom(images: Tensor, max_share: float) -> Tensor:
    """Crop a random region and resize it to the full size (Szegedy et al. 2015)."""
    # Coordinates are from -1 to 1. Height and width are sampled independently, so shapes stretch.
    kept = 1 - max_share * torch.rand(len(images), 2, device=images.device)  # (B, 2)
    centres = (1 - kept) * (2 * torch.rand_like(kept) - 1)
    maps = torch.cat([torch.diag_embed(kept), centres[..., None]], dim=-1)  # (B, 2, 3)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _change_colour(images: Tensor, max_change: float) -> Tensor:
    uniforms = torch.rand(3, len(images), 1, 1, 1, device=images.device)
    brightness, contrast, saturation = 1 + max_change * (2 * uniforms - 1)
    images = (images * brightness).clamp(0, 1)
    images = _blend(images, to_grey(images).mean((2, 3), keepdim=True), contrast)
    return _blend(images, to_grey(images), saturation)


def _blend(images: Tensor, others: Tensor, share: Tensor) -> Tensor:
    return (share * images + (1 - share) * others).clamp(0, 1)


def to_grey(images: Tensor) -> Tensor:
    """Return the brightness of the pixels, (B, 1, Y, X)."""
    if images.size(1) == 1:
        return images
    weights = torch.tensor(_GREY, device=images.device).view(3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def _cut_out(images: Tensor, side: int) -> Tensor:
    """Fill a square around a random pixel, possibly partly outside (DeVries and Taylor 2017)."""
    num, _, height, width = images.shape
    device = images.device
    tops = torch.randint(height, (num, 1, 1, 1), device=device) - side // 2
    lefts = torch.randint(width, (num, 1, 1, 1), device=device) - side // 2
    rows = torch.arange(height, device=device)[:, None]
    columns = torch.arange(width, device=device)
    is_cut = (rows >= tops) & (rows < tops + side) & (columns >= lefts) & (columns < lefts + side)
    return torch.where(is_cut, images.mean((2, 3), keepdim=True), images)
