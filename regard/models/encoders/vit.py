"""The vision transformer: an image is cut into patches, which are read like words."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention.positions import GridPositions, LearnedPositions, Positions
from regard.core.config import Positive
from regard.core.errors import ConfigError
from regard.core.module import Conv2d
from regard.core.specs import ImageSpec
from regard.models.interfaces import Encoder, Memory, all_real
from regard.models.transformer import PositionedStack, VisionBlockConfig


@dataclass(frozen=True, kw_only=True)
class VitEncoderConfig(VisionBlockConfig):
    """A stack of blocks over the patches of an image."""

    kind: Literal["vit"] = "vit"
    """What kind of encoder this is."""
    patch: Positive = 4
    """Width and height of a patch in pixels; it must divide the image's."""
    positions: Literal["learned", "sincos2d"] = "learned"
    """How places are told: by learned vectors, or by sines and cosines of row and column."""
    summary: Literal["class", "mean"] = "class"
    """What stands for the whole image: the state of a class token, or the mean of the patches."""


class VitEncoder(PositionedStack, Encoder):
    """Reads an image as a sequence of patches (Dosovitskiy et al. 2021, eq. 1-4).

    The class token stands before the patches inside; the memory holds the patches alone.

    Args:
        config: The settings.
        spec: The sizes of the images.
    """

    def __init__(self, config: VitEncoderConfig, spec: ImageSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.layout = count_patches(spec.shape, config.patch, name="patch")
        self.patch_map = Conv2d(spec.channels, config.dim, config.patch, stride=config.patch)
        # A vector has no fan to start by, and no decay.
        self.class_token = (
            nn.Parameter(0.02 * torch.randn(config.dim)) if config.summary == "class" else None
        )
        self.num_before = int(config.summary == "class")
        positions = _build_positions(config, self.layout, num_before=self.num_before)
        self.build_layers(config, positions)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read images (B, C, Y, X) and return their `Memory`; they have no padding to mask."""
        grid = self.patch_map(values.to(self.patch_map.weight.dtype))  # (B, D, Y, X)
        states = grid.flatten(2).transpose(1, 2)  # (B, P, D)
        if self.class_token is not None:
            first = self.class_token.to(states.dtype).expand(len(states), 1, -1)
            states = torch.cat([first, states], dim=1)  # (B, L, D)
        states = self.norm(self.blocks(self.embed(states)))
        patches = states[:, self.num_before :]  # (B, S, D)
        summary = patches.mean(1) if self.class_token is None else states[:, 0]
        return Memory(patches, all_real(patches), summary, layout=self.layout)


def count_patches(shape: tuple[int, int, int], patch: int, *, name: str) -> tuple[int, int]:
    """Return the rows and columns of patches in an image.

    Args:
        shape: Channels, rows and columns of the image.
        patch: Width and height of a patch.
        name: Of the setting, for the message if it does not divide the image.
    """
    _, num_rows, num_columns = shape
    if num_rows % patch or num_columns % patch:
        raise ConfigError(
            f"`{name}` must divide both sides of the image ({num_rows} x {num_columns} pixels), "
            f"but is {patch}."
        )
    return num_rows // patch, num_columns // patch


def _build_positions(
    config: VitEncoderConfig, layout: tuple[int, int], *, num_before: int
) -> Positions:
    num_rows, num_columns = layout
    if config.positions == "learned":
        return LearnedPositions(
            dim=config.dim,
            num_heads=config.num_heads,
            max_length=num_before + num_rows * num_columns,
        )
    return GridPositions(
        dim=config.dim, num_heads=config.num_heads, num_columns=num_columns, num_before=num_before
    )
