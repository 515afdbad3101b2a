"""Speech transformer: convolutional subsampling followed by transformer blocks."""

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
    """Hyperparameters of the encoder."""

    kind: Literal["speech"] = "speech"
    """Kind of encoder."""
    channels: Positive = 32
    """Channels of the convolutions."""
    is_norm_first: bool = True
    """Whether the norm is before each layer (pre-norm) instead of after the residual sum."""


class SpeechEncoder(PositionedStack, Encoder):
    """Encoder of audio with convolutions and self-attention (Dong et al. 2018, section 3.1).

    Args:
        config: The hyperparameters.
        spec: Input specification of the audio.
    """

    num_joined = 4  # two convolutions with stride 2

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
        """Encode log-mel frames (B, F, M) into a `Memory` with a quarter of the positions."""
        mask = mask.to(values.device, non_blocking=True)
        grid = values[:, None].to(self.input_map.weight.dtype)  # (B, C, F, M)
        for convolution in self.convolutions:
            # Padding is zeroed before each convolution, so results do not depend on the batch.
            grid = convolution(grid * mask[:, None, :, None]).relu()
            mask = mask[:, ::2]
        embedded = self.input_map(grid.transpose(1, 2).flatten(2))  # (B, S, D)
        states = self.norm(self.blocks(self.embed(embedded), mask=mask[:, None]))
        return Memory(states, mask, masked_mean(states, mask))
