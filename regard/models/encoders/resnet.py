"""Residual network (ResNet) encoder of images."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.config import Config, DropoutRate, at_least
from regard.core.dropout import Dropout
from regard.core.errors import ConfigError
from regard.core.module import Conv2d, Module
from regard.core.specs import ImageSpec
from regard.models.init import InitConfig, initialize
from regard.models.interfaces import Encoder, Memory, all_real


@dataclass(frozen=True, kw_only=True)
class ResnetEncoderConfig(Config):
    """Hyperparameters of the encoder. Each stage but the first halves rows and columns."""

    kind: Literal["resnet"] = "resnet"
    """Kind of encoder."""
    stem: Literal["small", "medium", "large", "patch"] = "small"
    """First convolution: 3 x 3 with stride 1, 5 x 5 with stride 2, 7 x 7 with stride 2 and max
    pooling, or non-overlapping 4 x 4 patches, which are the cheapest."""
    widths: tuple[int, ...] = (64, 128, 256)
    """Channels of each stage; the last value is the width of the states."""
    blocks: tuple[int, ...] = (2, 2, 2)
    """Number of residual blocks of each stage."""
    is_residual: bool = True
    """Whether the input of each block is added to its output; without, it is a plain network."""
    dropout: DropoutRate = 0.0
    """Dropout probability of the states."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stages(self.widths, self.blocks)


def check_stages(widths: tuple[int, ...], blocks: tuple[int, ...]) -> None:
    """Raise `ConfigError` unless each stage has a width and a number of blocks, all positive."""
    if not widths:
        raise ConfigError("`widths` must have at least one stage, but is empty.")
    if len(blocks) != len(widths):
        raise ConfigError(
            f"`blocks` must have a number for each of the {len(widths)} `widths`, but has "
            f"{len(blocks)}."
        )
    for name, values in (("widths", widths), ("blocks", blocks)):
        for index, value in enumerate(values):
            at_least(f"{name}[{index}]", value, 1)


class ResnetEncoder(Encoder):
    """Residual network (He et al. 2016, section 4.2).

    The states are the cells of the last feature map, row by row. The summary is their mean.

    Args:
        config: The hyperparameters.
        spec: Input specification of the images.
    """

    def __init__(self, config: ResnetEncoderConfig, spec: ImageSpec) -> None:
        super().__init__()
        self.memory_dim = config.widths[-1]
        # Sizes are rounded up when halved.
        scale = SCALES[config.stem] * 2 ** (len(config.widths) - 1)
        self.layout = -(-spec.height // scale), -(-spec.width // scale)
        self.stem = STEMS[config.stem](spec.channels, config.widths[0])
        self.blocks = nn.ModuleList()
        block = ResidualBlock if config.is_residual else PlainBlock
        in_width = config.widths[0]
        for stage, (width, num_blocks) in enumerate(zip(config.widths, config.blocks, strict=True)):
            for index in range(num_blocks):
                stride = 2 if stage and not index else 1
                self.blocks.append(block(in_width, width, stride=stride))
                in_width = width
        self.dropout = Dropout(config.dropout)
        # He et al. 2015; kept by the rule 'default' of a model.
        initialize(self, InitConfig(rule="kaiming_normal"))

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode images (B, C, Y, X) into a `Memory`. There is no padding."""
        grid = values.to(next(self.parameters()).dtype)
        # Convolutions are fastest with channels last, by a quarter on a CPU. It is set twice, since
        # an image of one channel is contiguous in both formats, and convolutions then return the
        # other format.
        grid = self.stem(grid.contiguous(memory_format=torch.channels_last))
        grid = grid.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            grid = block(grid)  # (B, D, Y, X)
        states = grid.flatten(2).transpose(1, 2)  # (B, S, D)
        layout = (grid.shape[2], grid.shape[3])
        return Memory(self.dropout(states), all_real(states), states.mean(1), layout=layout)


MIN_STRIDED_WIDTH = 16
"""Fewest input channels of a 1 x 1 convolution with a stride. With fewer, its weight gradient
writes past its workspace on a CPU: below 8 channels with AVX2, 16 with AVX-512 (oneDNN 3.12,
issue 6035)."""


class ResidualBlock(Module):
    """Residual block of two 3 x 3 convolutions with batch norms: relu(x + f(x)).

    If width or size change, x goes through a 1 x 1 convolution (He et al. 2016, eq. 2).
    """

    def __init__(self, in_width: int, width: int, *, stride: int) -> None:
        super().__init__()
        self.inner = _two_convolutions(in_width, width, stride=stride)
        # A slice has the same result as the stride of a 1 x 1 convolution.
        self.step = stride if in_width < MIN_STRIDED_WIDTH else 1
        is_same = in_width == width and stride == 1
        self.shortcut = (
            nn.Identity()
            if is_same
            else nn.Sequential(*_convolution(in_width, width, kernel=1, stride=stride // self.step))
        )

    def forward(self, grid: Tensor) -> Tensor:
        """Transform (B, C, Y, X)."""
        kept = grid[..., :: self.step, :: self.step]
        total: Tensor = self.inner(grid) + self.shortcut(kept)
        return total.relu()


class PlainBlock(Module):
    """The layers of a residual block without the addition of its input: relu(f(x))."""

    def __init__(self, in_width: int, width: int, *, stride: int) -> None:
        super().__init__()
        self.inner = _two_convolutions(in_width, width, stride=stride)

    def forward(self, grid: Tensor) -> Tensor:
        """Transform (B, C, Y, X)."""
        total: Tensor = self.inner(grid)
        return total.relu()


def _two_convolutions(in_width: int, width: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(
        *_convolution(in_width, width, kernel=3, stride=stride),
        nn.ReLU(inplace=True),
        *_convolution(width, width, kernel=3),
    )


def _convolution(in_width: int, width: int, *, kernel: int, stride: int = 1) -> list[nn.Module]:
    # No bias: the batch norm has one.
    convolution = Conv2d(in_width, width, kernel, stride=stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(width)]


def _plain_stem(channels: int, width: int, *, kernel: int, stride: int) -> nn.Sequential:
    convolution = _convolution(channels, width, kernel=kernel, stride=stride)
    return nn.Sequential(*convolution, nn.ReLU(inplace=True))


def _large_stem(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        *_plain_stem(channels, width, kernel=7, stride=2), nn.MaxPool2d(3, stride=2, padding=1)
    )


def _patch_stem(channels: int, width: int) -> nn.Sequential:
    side = SCALES["patch"]
    patches = Conv2d(channels, width, side, stride=side, bias=False)
    return nn.Sequential(patches, nn.BatchNorm2d(width), nn.ReLU(inplace=True))


STEMS: dict[str, Callable[[int, int], nn.Sequential]] = {
    "small": partial(_plain_stem, kernel=3, stride=1),
    "medium": partial(_plain_stem, kernel=5, stride=2),
    "large": _large_stem,
    "patch": _patch_stem,
}
SCALES = {"small": 1, "medium": 2, "large": 4, "patch": 4}
"""Downsampling factor of each stem."""
