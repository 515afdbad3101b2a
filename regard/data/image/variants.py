"""Images in the form of other images: another size, other channels, a video as its last frame."""

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regard.core.specs import ImageSpec, VideoSpec
from regard.data.image.augment import to_grey


def bring_to(images: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Bring images to a shape as well as can be done without learning.

    Sizes are changed as Pillow's bicubic filter does, grey becomes colour by being repeated,
    colour becomes grey, and a video is represented by its last frame.

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


def name_change(source: ImageSpec | VideoSpec, target: ImageSpec) -> str:
    """Name what `bring_to` does to sources of one form; empty where it changes nothing."""
    changes = {
        "last frame": source is not source.frame,
        "bicubic": source.frame.shape[1:] != target.shape[1:],
        "grey": source.frame.channels != target.channels,
    }
    return "+".join(name for name, is_so in changes.items() if is_so)
