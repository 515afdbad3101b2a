"""Conversion of images to another size or number of channels, and of videos to their last frame."""

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regard.core.specs import ImageSpec, VideoSpec
from regard.data.image.augment import to_grey


def convert_images(images: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Convert images to a shape without a trained model, as a baseline.

    Images are resized with Pillow's bicubic filter, grey is repeated to colour, colour is
    converted to grey, and a video is represented by its last frame.

    Args:
        images: (B, C, Y, X), or (B, F, C, Y, X), from 0 to 1.
        shape: Channels, rows and columns.

    Returns:
        Images (B, C, Y, X), from 0 to 1.
    """
    if images.dim() == 5:
        images = images[:, -1]  # (B, C, Y, X)
    if tuple(images.shape[-2:]) != shape[1:]:
        images = F.interpolate(images, size=shape[1:], mode="bicubic", antialias=True).clamp(0, 1)
    if images.shape[1] > shape[0]:
        images = to_grey(images)
    return images.expand(-1, shape[0], -1, -1)


def describe_conversion(source: ImageSpec | VideoSpec, target: ImageSpec) -> str:
    """Return the names of the steps of `convert_images`; empty if it changes nothing."""
    changes = {
        "last frame": source is not source.frame,
        "bicubic": source.frame.shape[1:] != target.shape[1:],
        "grey": source.frame.channels != target.channels,
    }
    return "+".join(name for name, is_needed in changes.items() if is_needed)
