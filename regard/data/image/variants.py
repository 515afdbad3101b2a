"""Images in the form of other images: another size, other channels, a video as its last frame."""

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

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


def name_change(source: tuple[int, ...], target: tuple[int, int, int]) -> str:
    """Say what `bring_to` does to sources of one shape; nothing where it leaves them as they are.

    Args:
        source: Channels, rows and columns, before them a video's frames.
        target: Channels, rows and columns.
    """
    changes = {
        "last frame": len(source) == 4,
        "bicubic": source[-2:] != target[1:],
        "grey": source[-3] != target[0],
    }
    return "+".join(name for name, is_so in changes.items() if is_so)
