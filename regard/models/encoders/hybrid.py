"""Hybrid image encoder: a residual network followed by transformer blocks."""

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
    """Hyperparameters of the encoder."""

    kind: Literal["hybrid"] = "hybrid"
    """Kind of encoder."""
    grid: ResnetEncoderConfig = field(default_factory=ResnetEncoderConfig)
    """Residual network that computes the grid of cells."""


class HybridEncoder(PositionedStack, Encoder):
    """Residual network followed by transformer blocks over the cells of its grid.

    The hybrid of Dosovitskiy et al. 2021 (section 3.1), with the 2D sinusoidal positions of Carion
    et al. 2020. Convolutions learn local features quickly; attention relates distant cells.

    Args:
        config: The hyperparameters.
        spec: Input specification of the images.
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
        """Encode images (B, C, Y, X) into a `Memory`. There is no padding."""
        grid = self.grid(values, mask)
        states = self.norm(self.blocks(self.embed(self.cell_map(grid.states))))  # (B, S, D)
        return Memory(states, grid.mask, states.mean(1), layout=grid.layout)
