"""The hybrid encoder: convolutions see what is in each cell, and the cells look at each other."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from regard.attention.positions import GridPositions
from regard.core.module import Linear
from regard.core.specs import ImageSpec
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.interfaces import Encoder, Memory
from regard.models.transformer import PositionedStack, VisionBlockConfig


@dataclass(frozen=True, kw_only=True)
class HybridEncoderConfig(VisionBlockConfig):
    """A residual network, and a stack of blocks over the cells of its grid."""

    kind: Literal["hybrid"] = "hybrid"
    """What kind of encoder this is."""
    grid: ResnetEncoderConfig = field(default_factory=ResnetEncoderConfig)
    """What turns an image into cells."""


class HybridEncoder(PositionedStack, Encoder):
    """Reads an image by convolutions and then as a sequence of cells.

    The hybrid of Dosovitskiy et al. 2021 (section 3.1), with the sines and cosines of row and
    column that Carion et al. 2020 have. Convolutions are quick to learn what is where; attention
    between cells far apart, how many there are and how they stand to each other.

    Args:
        config: The settings.
        spec: The sizes of the images.
    """

    def __init__(self, config: HybridEncoderConfig, spec: ImageSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.grid = ResnetEncoder(config.grid, spec)
        self.cell_map = Linear(self.grid.memory_dim, config.dim)
        _, columns = self.grid.layout
        positions = GridPositions(dim=config.dim, num_heads=config.num_heads, num_columns=columns)
        self.build_layers(config, positions)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read images (B, C, Y, X) and return their `Memory`; they have no padding to mask."""
        seen = self.grid(values, mask)
        states = self.norm(self.blocks(self.embed(self.cell_map(seen.states))))  # (B, S, D)
        return Memory(states, seen.mask, states.mean(1), layout=seen.layout)
