"""The speech transformer: convolutions make sound shorter, blocks look at what is left."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.core.config import Positive
from regard.core.module import Conv2d, Linear
from regard.core.specs import AudioSpec
from regard.models.interfaces import Encoder, Memory, masked_mean
from regard.models.transformer import PositionedStack, TransformerConfig, build_positions


@dataclass(frozen=True, kw_only=True)
class SpeechEncoderConfig(TransformerConfig):
    """Two convolutions that leave a quarter of the frames, and a stack of blocks over these."""

    kind: Literal["speech"] = "speech"
    """What kind of encoder this is."""
    channels: Positive = 32
    """Channels of the convolutions."""
    is_norm_first: bool = True
    """Norm before each layer instead of after the residual sum."""


class SpeechEncoder(PositionedStack, Encoder):
    """Reads sound with convolutions and self-attention (Dong et al. 2018, section 3.1).

    Args:
        config: The settings.
        spec: The sizes of the frames.
    """

    num_joined = 4  # each of two convolutions leaves half of what it reads

    def __init__(self, config: SpeechEncoderConfig, spec: AudioSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.convolutions = nn.ModuleList(
            Conv2d(channels, config.channels, 3, stride=2, padding=1)
            for channels in (1, config.channels)
        )
        num_bins = -(-spec.num_mels // self.num_joined)
        self.input_map = Linear(config.channels * num_bins, config.dim)
        self.build_layers(config, build_positions(config, is_causal=False))

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read log-mel frames (B, F, M) and return their `Memory`, a quarter as long."""
        mask = mask.to(values.device, non_blocking=True)
        grid = values[:, None].to(self.input_map.weight.dtype)  # (B, C, F, M)
        for convolution in self.convolutions:
            # Padding is silenced each time, so that a recording hears nothing of its neighbours.
            grid = convolution(grid * mask[:, None, :, None]).relu()
            mask = mask[:, ::2]
        embedded = self.input_map(grid.transpose(1, 2).flatten(2))  # (B, S, D)
        states = self.norm(self.blocks(self.embed(embedded), mask=mask[:, None]))
        return Memory(states, mask, masked_mean(states, mask))
