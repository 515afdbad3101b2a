"""Video encoder: an image encoder per frame, and a transformer or GRU over time."""

from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention.positions import GridPositions, sinusoids
from regard.core.config import Config, DropoutRate, Positive
from regard.core.errors import ConfigError
from regard.core.module import Module
from regard.core.specs import VideoSpec
from regard.models.encoders.image import IMAGE_ENCODERS, ImageEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.interfaces import Encoder, Memory, all_real
from regard.models.transformer import build_fusion


@dataclass(frozen=True, kw_only=True)
class VideoEncoderConfig(Config):
    """Hyperparameters of the encoder."""

    kind: Literal["video"] = "video"
    """Kind of encoder."""
    image: ImageEncoderConfig = field(default_factory=ResnetEncoderConfig)
    """Image encoder of the frames."""
    num_seen: Positive = 1
    """Number of consecutive frames stacked as channels of the image encoder's input."""
    over_time: Literal["transformer", "gru"] = "transformer"
    """Model over time: transformer blocks over all cells of all frames, or a bidirectional GRU per
    cell."""
    num_layers: Positive = 2
    """Number of these blocks or layers."""
    num_heads: Positive = 4
    """Number of attention heads of the blocks; not used by the GRU."""
    dropout: DropoutRate = 0.1
    """Dropout probability in the blocks, or between the GRU layers."""


class VideoEncoder(Encoder):
    """Encoder of videos, whose memory contains all cells of all frames.

    Like model 1 of Arnab et al. 2021, with blocks over space and time, except that the frames may
    be encoded by a residual network. Positions are sinusoidal embeddings of frame, row and column.

    Args:
        config: The hyperparameters.
        spec: Input specification of the videos.
    """

    def __init__(self, config: VideoEncoderConfig, spec: VideoSpec) -> None:
        super().__init__()
        self.num_seen = config.num_seen
        stacked = replace(spec.frame, channels=config.num_seen * spec.frame.channels)
        self.image = IMAGE_ENCODERS[type(config.image)](config.image, stacked)
        self.memory_dim = self.image.memory_dim
        self.over_time = OVER_TIME[config.over_time](config, self.memory_dim)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode videos (B, F, C, Y, X) into a `Memory`. There is no padding."""
        num_videos, num_frames = values.shape[:2]
        memory = self.image(_stack_frames(values, self.num_seen).flatten(0, 1), mask)
        assert memory.layout is not None
        cells = memory.states.view(num_videos, num_frames, *memory.states.shape[1:])  # (B, F, P, D)
        cells = add_cell_positions(cells, num_columns=memory.layout[1])
        states = self.over_time(cells).flatten(1, 2)  # (B, S, D)
        layout = (num_frames, *memory.layout)
        return Memory(states, all_real(states), states.mean(1), layout=layout)


class BlocksOverTime(Module):
    """Transformer blocks over all cells of all frames."""

    def __init__(self, config: VideoEncoderConfig, dim: int) -> None:
        super().__init__()
        if dim % config.num_heads:
            raise ConfigError(
                f"`num_heads` must divide the width of the frames' states ({dim}), but is "
                f"{config.num_heads}."
            )
        self.blocks, self.norm = build_fusion(
            dim, num_layers=config.num_layers, num_heads=config.num_heads, dropout=config.dropout
        )

    def forward(self, cells: Tensor) -> Tensor:
        """Transform (B, F, P, D)."""
        states = cells.flatten(1, 2)  # (B, S, D)
        normed: Tensor = self.norm(self.blocks(states))
        return normed.view_as(cells)


class RecurrenceOverTime(Module):
    """Bidirectional GRU over the frames, applied to each cell."""

    def __init__(self, config: VideoEncoderConfig, dim: int) -> None:
        super().__init__()
        if dim % 2:
            raise ConfigError(
                "The width of the frames' states must be even with `over_time` 'gru', but is "
                f"{dim}."
            )
        self.recurrence = nn.GRU(
            dim,
            dim // 2,
            config.num_layers,
            batch_first=True,
            bidirectional=True,
            dropout=config.dropout if config.num_layers > 1 else 0.0,
        )

    def forward(self, cells: Tensor) -> Tensor:
        """Transform (B, F, P, D)."""
        by_cell = cells.transpose(1, 2)  # (B, P, F, D)
        states, _ = self.recurrence(by_cell.flatten(0, 1))
        by_frame: Tensor = states.view_as(by_cell).transpose(1, 2)  # (B, F, P, D)
        return by_frame


OVER_TIME: dict[str, type[BlocksOverTime] | type[RecurrenceOverTime]] = {
    "transformer": BlocksOverTime,
    "gru": RecurrenceOverTime,
}


def _stack_frames(frames: Tensor, num_seen: int) -> Tensor:
    """Stack the preceding frames of each frame of (B, F, C, Y, X) as channels."""
    first = frames[:, :1].expand(-1, num_seen - 1, -1, -1, -1)
    padded = torch.cat([first, frames], dim=1)
    num_frames = frames.shape[1]
    shifted = [padded[:, past : past + num_frames] for past in reversed(range(num_seen))]
    return torch.cat(shifted, dim=2)  # (B, F, C, Y, X)


def add_cell_positions(cells: Tensor, *, num_columns: int) -> Tensor:
    """Add position embeddings of frame, row and column to (B, F, P, D)."""
    _, num_frames, num_cells, dim = cells.shape
    grid = GridPositions(dim=dim, num_heads=1, num_columns=num_columns)
    frames = sinusoids(torch.arange(num_frames, device=cells.device), dim)  # (F, D)
    positions = grid.embed(torch.arange(num_cells, device=cells.device))  # (P, D)
    return cells + (frames[:, None] + positions).to(cells.dtype)
