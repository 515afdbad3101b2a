"""Image generators: convolutional upsampling, or a transformer over patches."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from regard.attention.positions import GridPositions, Positions
from regard.core.config import Config, Positive
from regard.core.module import Conv2d, Linear, Module
from regard.models.encoders.resnet import check_stages
from regard.models.encoders.video import add_cell_positions
from regard.models.encoders.vit import count_patches
from regard.models.init import InitConfig, initialize
from regard.models.interfaces import Memory
from regard.models.transformer import VisionBlockConfig, build_final_norm, build_stack

ImageShape = tuple[int, int, int]
"""Channels, rows and columns."""
Layout = tuple[int, ...] | None
"""Grid of a memory: (frames of a video,) rows and columns; None = no grid."""

NEGATIVE_SLOPE = 0.2
"""Negative slope of the leaky ReLU."""


class Generator(Module, ABC):
    """Base class of generators: `Memory` → image, not autoregressive."""

    @abstractmethod
    def forward(self, memory: Memory) -> Tensor:
        """Generate one image per source, (B, C, Y, X)."""


@dataclass(frozen=True, kw_only=True)
class ConvolutionGeneratorConfig(Config):
    """Stages of residual blocks; each but the first doubles rows and columns."""

    kind: Literal["convolution"] = "convolution"
    """Kind of generator."""
    widths: tuple[int, ...] = (128, 64, 32)
    """Channels of each stage; the last has the size of the image."""
    blocks: tuple[int, ...] = (1, 1, 1)
    """Number of residual blocks of each stage."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stages(self.widths, self.blocks)


class ConvolutionGenerator(Generator):
    """Residual convolutional network that upsamples a coarse grid to an image.

    The grid is the memory, if it has a layout (of a video, the last frame, whose states depend on
    all frames). Otherwise a linear layer maps the summary to the coarsest grid. There are no norms,
    since they remove the range of the pixels (Lim et al. 2017).

    Args:
        config: The hyperparameters.
        memory_dim: Width of the memory's states.
        layout: Layout of the memory.
        shape: Shape of the image.
    """

    def __init__(
        self,
        config: ConvolutionGeneratorConfig,
        *,
        memory_dim: int,
        layout: Layout,
        shape: ImageShape,
    ) -> None:
        super().__init__()
        scales = [2**stage for stage in reversed(range(len(config.widths)))]
        # Sizes are rounded up when halved, as in the encoder.
        sizes = [(-(-shape[1] // scale), -(-shape[2] // scale)) for scale in scales]
        start = _LatentStart if layout is None else _GridStart
        self.start = start(memory_dim, config.widths[0], size=sizes[0])
        self.blocks = nn.ModuleList()
        in_width = config.widths[0]
        for size, width, num_blocks in zip(sizes, config.widths, config.blocks, strict=True):
            self.blocks.append(_Upsample(in_width, width, size=size))
            self.blocks.extend(_PlainBlock(width) for _ in range(num_blocks))
            in_width = width
        self.output = Conv2d(in_width, shape[0], 3, padding=1)
        initialize(self, InitConfig(rule="kaiming_normal"))
        # Residual branches and the output start at zero.
        for block in self.blocks:
            if isinstance(block, _PlainBlock):
                nn.init.zeros_(block.last.weight)
        nn.init.zeros_(self.output.weight)

    def forward(self, memory: Memory) -> Tensor:
        """Generate one image per source, (B, C, Y, X)."""
        grid = self.start(memory)  # (B, D, Y, X)
        # Convolutions are fastest in this memory format, as in the ResNet encoder.
        grid = grid.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            grid = block(grid)
        return self.output(_activate(grid))  # (B, C, Y, X)


class _LatentStart(Module):
    """Linear layer from one vector to a grid."""

    def __init__(self, memory_dim: int, width: int, *, size: tuple[int, int]) -> None:
        super().__init__()
        self._shape = (width, *size)
        self.spread = Linear(memory_dim, width * size[0] * size[1])

    def forward(self, memory: Memory) -> Tensor:
        """Return the grid, (B, D, Y, X)."""
        return self.spread(memory.summary).view(-1, *self._shape)


class _GridStart(Module):
    """1 x 1 convolution over the grid of a memory."""

    def __init__(self, memory_dim: int, width: int, *, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size
        self.spread = Conv2d(memory_dim, width, 1)

    def forward(self, memory: Memory) -> Tensor:
        """Return the grid, (B, D, Y, X)."""
        assert memory.layout is not None
        num_rows, num_columns = memory.layout[-2:]
        cells = memory.states[:, -num_rows * num_columns :]  # (B, P, D)
        grid = cells.mT.reshape(len(cells), -1, num_rows, num_columns)  # (B, D, Y, X)
        return self.spread(_resize(grid, self.size))


class _Upsample(Module):
    """Upsampling of a grid, followed by a convolution."""

    def __init__(self, in_width: int, width: int, *, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size
        self.convolution = Conv2d(in_width, width, 3, padding=1)

    def forward(self, grid: Tensor) -> Tensor:
        """Transform (B, D, Y, X)."""
        return self.convolution(_resize(_activate(grid), self.size))


class _PlainBlock(Module):
    """Residual block of two 3 x 3 convolutions without norms."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = Conv2d(width, width, 3, padding=1)
        self.last = Conv2d(width, width, 3, padding=1)

    def forward(self, grid: Tensor) -> Tensor:
        """Transform (B, D, Y, X)."""
        return grid + self.last(_activate(self.first(_activate(grid))))


def _activate(grid: Tensor) -> Tensor:
    """Apply a leaky ReLU: without norms, a ReLU could end up with all inputs negative."""
    return F.leaky_relu(grid, NEGATIVE_SLOPE)


def _resize(grid: Tensor, size: tuple[int, int]) -> Tensor:
    is_same = tuple(grid.shape[-2:]) == size
    return grid if is_same else F.interpolate(grid, size=size, mode="nearest")


@dataclass(frozen=True, kw_only=True)
class AttentionGeneratorConfig(VisionBlockConfig):
    """Transformer blocks over the patches of the generated image."""

    kind: Literal["attention"] = "attention"
    """Kind of generator."""
    patch: Positive = 4
    """Width and height of a patch in pixels; must divide the size of the image."""


class AttentionGenerator(Generator):
    """Transformer over patches with self-attention and cross-attention to the memory.

    A non-causal transformer decoder (Vaswani et al. 2017) whose inputs are the position embeddings
    of the patches. The memory may be one latent, a grid, or all frames of a video.

    Args:
        config: The hyperparameters.
        memory_dim: Width of the memory's states.
        layout: Ignored; each memory has its layout.
        shape: Shape of the image.
    """

    def __init__(
        self,
        config: AttentionGeneratorConfig,
        *,
        memory_dim: int,
        layout: Layout,
        shape: ImageShape,
    ) -> None:
        super().__init__()
        self.patch = config.patch
        self.layout = count_patches(shape, config.patch, name="generator.patch")
        self.memory_map = Linear(memory_dim, config.dim)
        self.patch_positions = GridPositions(
            dim=config.dim, num_heads=config.num_heads, num_columns=self.layout[1]
        )
        positions = Positions(dim=config.dim, num_heads=config.num_heads)
        self.blocks = build_stack(config, positions, memory_dim=config.dim)
        self.norm = build_final_norm(config)
        self.output = Linear(config.dim, shape[0] * config.patch**2)

    def forward(self, memory: Memory) -> Tensor:
        """Generate one image per source, (B, C, Y, X)."""
        source = self.memory_map(memory.states)  # (B, S, D)
        if memory.layout is not None:
            num_cells = memory.layout[-2] * memory.layout[-1]
            frames = source.view(len(source), -1, num_cells, source.shape[-1])  # (B, F, P, D)
            frames = add_cell_positions(frames, num_columns=memory.layout[-1])
            source = frames.flatten(1, 2)  # (B, S, D)
        indices = torch.arange(self.layout[0] * self.layout[1], device=source.device)
        patches = self.patch_positions.embed(indices).to(source.dtype)  # (P, D)
        states = patches.expand(len(source), -1, -1)  # (B, P, D)
        states = self.blocks(states, memory=source, memory_mask=memory.mask)
        patches = self.output(self.norm(states))  # (B, P, any width)
        grid = patches.mT.reshape(len(patches), -1, *self.layout)
        return F.pixel_shuffle(grid, self.patch)  # (B, C, Y, X)


GeneratorConfig = ConvolutionGeneratorConfig | AttentionGeneratorConfig
GENERATORS: dict[type[Any], Callable[..., Generator]] = {
    ConvolutionGeneratorConfig: ConvolutionGenerator,
    AttentionGeneratorConfig: AttentionGenerator,
}
