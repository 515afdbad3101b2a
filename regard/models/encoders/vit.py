"""Vision transformer (ViT) encoder of images."""

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
    """Hyperparameters of the encoder."""

    kind: Literal["vit"] = "vit"
    """Kind of encoder."""
    patch: Positive = 4
    """Width and height of a patch in pixels; must divide the size of the image."""
    positions: Literal["learned", "sincos2d"] = "learned"
    """Position embeddings: learned, or 2D sinusoidal."""
    summary: Literal["class", "mean"] = "class"
    """Summary of the image: the state of a class token, or the mean of the patches."""


class VitEncoder(PositionedStack, Encoder):
    """Vision transformer (Dosovitskiy et al. 2021, eq. 1-4).

    The class token comes before the patches. The memory contains the patches only.

    Args:
        config: The hyperparameters.
        spec: Input specification of the images.
    """

    def __init__(self, config: VitEncoderConfig, spec: ImageSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.layout = count_patches(spec.shape, config.patch, name="patch")
        self.patch_map = Conv2d(spec.channels, config.dim, config.patch, stride=config.patch)
        # A vector is not initialised by fan and has no weight decay.
        self.class_token = (
            nn.Parameter(nn.init.normal_(torch.empty(config.dim), std=0.02))
            if config.summary == "class"
            else None
        )
        self.num_before = int(config.summary == "class")
        positions = _build_positions(config, self.layout, num_before=self.num_before)
        self.build_layers(config, positions)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode images (B, C, Y, X) into a `Memory`. There is no padding."""
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
    """Return the number of rows and columns of patches in an image.

    Args:
        shape: Channels, rows and columns of the image.
        patch: Width and height of a patch.
        name: Name of the setting, for the error message.
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
