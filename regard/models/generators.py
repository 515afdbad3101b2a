"""Generators: Memory → image; convolutions that grow a grid, or patches that look at the memory."""

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
from regard.models.init import InitConfig, initialise
from regard.models.interfaces import Memory
from regard.models.transformer import VisionBlockConfig, build_final_norm, build_stack

ImageShape = tuple[int, int, int]
"""Channels, rows and columns."""
Layout = tuple[int, ...] | None
"""Rows and columns of the grid that a memory is, a video's frames before them; None = no grid."""

SLOPE = 0.2
"""What is left of values below zero in convolutions."""


class Generator(Module, ABC):
    """Turns a `Memory` into an image, all of it at once."""

    @abstractmethod
    def forward(self, memory: Memory) -> Tensor:
        """Return an image for each source, (B, C, Y, X)."""


@dataclass(frozen=True, kw_only=True)
class ConvolutionGeneratorConfig(Config):
    """Stages of residual convolutions; each but the first doubles rows and columns."""

    kind: Literal["convolution"] = "convolution"
    """What kind of generator this is."""
    widths: tuple[int, ...] = (128, 64, 32)
    """Channels of each stage; the last is at the size of the image."""
    blocks: tuple[int, ...] = (1, 1, 1)
    """Residual blocks of each stage."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stages(self.widths, self.blocks)


class ConvolutionGenerator(Generator):
    """Grows an image from a coarse grid, stage by stage: a residual network upside down.

    A memory with a layout is the grid, a video's that of its last frame, which has seen the others.
    Any other is one vector, its summary, that a layer spreads over the coarsest grid. There is no
    norm, which would take the range of the pixels away (Lim et al. 2017).

    Args:
        config: The settings.
        memory_dim: Width of the memory's states.
        layout: Of the memory.
        shape: Of the image.
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
        # Each halving leaves the larger half, as in an encoder.
        sizes = [(-(-shape[1] // scale), -(-shape[2] // scale)) for scale in scales]
        start = _CodeStart if layout is None else _GridStart
        self.start = start(memory_dim, config.widths[0], size=sizes[0])
        self.blocks = nn.ModuleList()
        before = config.widths[0]
        for size, width, num_blocks in zip(sizes, config.widths, config.blocks, strict=True):
            self.blocks.append(_Growth(before, width, size=size))
            self.blocks.extend(_PlainBlock(width) for _ in range(num_blocks))
            before = width
        self.output = Conv2d(before, shape[0], 3, padding=1)
        initialise(self, InitConfig(rule="kaiming_normal"))
        # What adds to something begins with nothing.
        for block in self.blocks:
            if isinstance(block, _PlainBlock):
                nn.init.zeros_(block.last.weight)
        nn.init.zeros_(self.output.weight)

    def forward(self, memory: Memory) -> Tensor:
        """Return an image for each source, (B, C, Y, X)."""
        grid = self.start(memory)  # (B, D, Y, X)
        # The order in which convolutions are quickest, as in the residual network.
        grid = grid.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            grid = block(grid)
        return self.output(_bend(grid))  # (B, C, Y, X)


class _CodeStart(Module):
    """Spreads one vector over a grid."""

    def __init__(self, memory_dim: int, width: int, *, size: tuple[int, int]) -> None:
        super().__init__()
        self._shape = (width, *size)
        self.spread = Linear(memory_dim, width * size[0] * size[1])

    def forward(self, memory: Memory) -> Tensor:
        """Return a grid, (B, D, Y, X)."""
        return self.spread(memory.summary).view(-1, *self._shape)


class _GridStart(Module):
    """Takes the cells of a memory as the grid that they are."""

    def __init__(self, memory_dim: int, width: int, *, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size
        self.spread = Conv2d(memory_dim, width, 1)

    def forward(self, memory: Memory) -> Tensor:
        """Return a grid, (B, D, Y, X)."""
        assert memory.layout is not None
        num_rows, num_columns = memory.layout[-2:]
        cells = memory.states[:, -num_rows * num_columns :]  # (B, P, D)
        grid = cells.mT.reshape(len(cells), -1, num_rows, num_columns)  # (B, D, Y, X)
        return self.spread(_resize(grid, self.size))


class _Growth(Module):
    """Brings a grid to another size and width."""

    def __init__(self, before: int, width: int, *, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size
        self.convolution = Conv2d(before, width, 3, padding=1)

    def forward(self, grid: Tensor) -> Tensor:
        """Transform (B, D, Y, X)."""
        return self.convolution(_resize(_bend(grid), self.size))


class _PlainBlock(Module):
    """x + f(x), f being two convolutions of 3 x 3 without a norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = Conv2d(width, width, 3, padding=1)
        self.last = Conv2d(width, width, 3, padding=1)

    def forward(self, grid: Tensor) -> Tensor:
        """Transform (B, D, Y, X)."""
        return grid + self.last(_bend(self.first(_bend(grid))))


def _bend(grid: Tensor) -> Tensor:
    """Let little of what is below zero through: without a norm, all might come to lie there."""
    return F.leaky_relu(grid, SLOPE)


def _resize(grid: Tensor, size: tuple[int, int]) -> Tensor:
    is_same = tuple(grid.shape[-2:]) == size
    return grid if is_same else F.interpolate(grid, size=size, mode="nearest")


@dataclass(frozen=True, kw_only=True)
class AttentionGeneratorConfig(VisionBlockConfig):
    """A stack of blocks over the patches of the image to be, which look at the memory."""

    kind: Literal["attention"] = "attention"
    """What kind of generator this is."""
    patch: Positive = 4
    """Width and height of a patch in pixels; it must divide the image's."""


class AttentionGenerator(Generator):
    """Writes all patches of an image at once: each looks at the others and at the memory.

    A transformer decoder without a direction (Vaswani et al. 2017): what asks is the place of each
    patch. It reads any memory: one code, a grid, all frames of a video.

    Args:
        config: The settings.
        memory_dim: Width of the memory's states.
        layout: Of the memory; not needed, it is read off each memory.
        shape: Of the image.
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
        """Return an image for each source, (B, C, Y, X)."""
        seen = self.memory_map(memory.states)  # (B, S, D)
        if memory.layout is not None:
            num_cells = memory.layout[-2] * memory.layout[-1]
            frames = seen.view(len(seen), -1, num_cells, seen.shape[-1])  # (B, F, P, D)
            frames = add_cell_positions(frames, num_columns=memory.layout[-1])
            seen = frames.flatten(1, 2)  # (B, S, D)
        numbers = torch.arange(self.layout[0] * self.layout[1], device=seen.device)
        patches = self.patch_positions.embed(numbers).to(seen.dtype)  # (P, D)
        states = patches.expand(len(seen), -1, -1)  # (B, P, D)
        states = self.blocks(states, memory=seen, memory_mask=memory.mask)
        patches = self.output(self.norm(states))  # (B, P, any width)
        grid = patches.mT.reshape(len(patches), -1, *self.layout)
        return F.pixel_shuffle(grid, self.patch)  # (B, C, Y, X)


GeneratorConfig = ConvolutionGeneratorConfig | AttentionGeneratorConfig
GENERATORS: dict[type[Any], Callable[..., Generator]] = {
    ConvolutionGeneratorConfig: ConvolutionGenerator,
    AttentionGeneratorConfig: AttentionGenerator,
}
