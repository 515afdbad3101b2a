"""The residual network: an image becomes a coarser grid of richer cells, stage by stage."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.config import Config, DropoutRate, at_least
from regard.core.errors import ConfigError
from regard.core.module import Conv2d, Dropout, Module
from regard.core.specs import ImageSpec
from regard.models.init import InitConfig, initialise
from regard.models.interfaces import Encoder, Memory, all_real


@dataclass(frozen=True, kw_only=True)
class ResnetEncoderConfig(Config):
    """Stages of residual blocks; each but the first halves rows and columns."""

    kind: Literal["resnet"] = "resnet"
    """What kind of encoder this is."""
    stem: Literal["small", "medium", "large", "patch"] = "small"
    """What comes first: 3 x 3 pixels at full size, 5 x 5 that leave half of each side, 7 x 7 that
    leave a quarter, or patches of 4 x 4, side by side, which leave as much and cost least."""
    widths: tuple[int, ...] = (64, 128, 256)
    """Channels of each stage; the last is the width of the states."""
    blocks: tuple[int, ...] = (2, 2, 2)
    """Residual blocks of each stage."""
    dropout: DropoutRate = 0.0
    """Dropout on the states."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stages(self.widths, self.blocks)


def check_stages(widths: tuple[int, ...], blocks: tuple[int, ...]) -> None:
    """Raise a `ConfigError` if stages do not have a width and a number of blocks each."""
    if not widths:
        raise ConfigError("`widths` must have at least one stage, but is empty.")
    if len(blocks) != len(widths):
        raise ConfigError(
            f"`blocks` must have a number for each of the {len(widths)} `widths`, but has "
            f"{len(blocks)}."
        )
    for name, values in (("widths", widths), ("blocks", blocks)):
        for number, value in enumerate(values):
            at_least(f"{name}[{number}]", value, 1)


class ResnetEncoder(Encoder):
    """Reads an image with residual blocks of convolutions (He et al. 2016, section 4.2).

    The states are the cells of the last grid, row by row; the summary is their mean.

    Args:
        config: The settings.
        spec: The sizes of the images.
    """

    def __init__(self, config: ResnetEncoderConfig, spec: ImageSpec) -> None:
        super().__init__()
        self.memory_dim = config.widths[-1]
        # Each halving leaves the larger half.
        scale = SCALES[config.stem] * 2 ** (len(config.widths) - 1)
        self.layout = -(-spec.height // scale), -(-spec.width // scale)
        self.stem = STEMS[config.stem](spec.channels, config.widths[0])
        self.blocks = nn.ModuleList()
        before = config.widths[0]
        for stage, (width, num_blocks) in enumerate(zip(config.widths, config.blocks, strict=True)):
            for number in range(num_blocks):
                stride = 2 if stage and not number else 1
                self.blocks.append(ResidualBlock(before, width, stride=stride))
                before = width
        self.dropout = Dropout(config.dropout)
        # By He et al. 2015, what a model's rule 'default' leaves as it is.
        initialise(self, InitConfig(rule="kaiming_normal"))

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read images (B, C, Y, X) and return their `Memory`; they have no padding to mask."""
        grid = values.to(next(self.parameters()).dtype)
        # The order in which convolutions are quickest, by a quarter on a CPU. It is asked for
        # twice, since an image of one channel is in both orders at once, and convolutions then
        # take the other one.
        grid = self.stem(grid.contiguous(memory_format=torch.channels_last))
        grid = grid.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            grid = block(grid)  # (B, D, Y, X)
        states = grid.flatten(2).transpose(1, 2)  # (B, S, D)
        layout = (grid.shape[2], grid.shape[3])
        return Memory(self.dropout(states), all_real(states), states.mean(1), layout=layout)


class ResidualBlock(Module):
    """relu(x + f(x)), f being two convolutions of 3 x 3, each with a batch norm.

    Where width or size change, x goes through a convolution of 1 x 1 (He et al. 2016, eq. 2).
    """

    def __init__(self, before: int, width: int, *, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            *_convolve(before, width, kernel=3, stride=stride),
            nn.ReLU(inplace=True),
            *_convolve(width, width, kernel=3),
        )
        is_same = before == width and stride == 1
        self.shortcut = (
            nn.Identity()
            if is_same
            else nn.Sequential(*_convolve(before, width, kernel=1, stride=stride))
        )

    def forward(self, grid: Tensor) -> Tensor:
        """Transform (B, C, Y, X)."""
        total: Tensor = self.inner(grid) + self.shortcut(grid)
        return total.relu()


def _convolve(before: int, width: int, *, kernel: int, stride: int = 1) -> list[nn.Module]:
    # The norm after it has a bias of its own.
    convolution = Conv2d(before, width, kernel, stride=stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(width)]


def _plain_stem(channels: int, width: int, *, kernel: int, stride: int) -> nn.Sequential:
    convolution = _convolve(channels, width, kernel=kernel, stride=stride)
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
"""How many pixels of a side each stem makes one."""
