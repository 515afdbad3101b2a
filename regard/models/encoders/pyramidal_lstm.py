"""Pyramidal LSTM encoder of audio: each layer halves the number of positions."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import pad

from regard.core.config import Config, DropoutRate, Positive
from regard.core.dropout import Dropout
from regard.core.specs import AudioSpec
from regard.models.interfaces import Encoder, Memory
from regard.models.recurrent import BidirectionalLSTM


@dataclass(frozen=True, kw_only=True)
class PyramidalLstmEncoderConfig(Config):
    """Hyperparameters of the encoder."""

    kind: Literal["pyramidal_lstm"] = "pyramidal_lstm"
    """Kind of encoder."""
    dim: Positive = 256
    """Width of the hidden states per direction."""
    num_layers: Positive = 4
    """Number of layers; each but the first concatenates pairs of neighbouring states."""
    dropout: DropoutRate = 0.0
    """Dropout probability between the layers and of the states."""


class PyramidalLstmEncoder(Encoder):
    """Pyramid of bidirectional LSTMs (Chan et al. 2016, eq. 3-5).

    One state covers 2^(layers - 1) frames, so a decoder attends to few positions.

    Args:
        config: The hyperparameters.
        spec: Input specification of the audio.
    """

    def __init__(self, config: PyramidalLstmEncoderConfig, spec: AudioSpec) -> None:
        super().__init__()
        self.memory_dim = 2 * config.dim
        self.num_joined = 2 ** (config.num_layers - 1)
        widths = [spec.num_mels, *[2 * self.memory_dim] * (config.num_layers - 1)]
        self.blocks = nn.ModuleList(BidirectionalLSTM(width, config.dim) for width in widths)
        self.dropout = Dropout(config.dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode log-mel frames (B, F, M) into a `Memory` with fewer positions."""
        states = values.to(next(self.parameters()).dtype)
        mask, final = mask.to(values.device, non_blocking=True), []
        for index, block in enumerate(self.blocks):
            if index:
                states, mask = join_pairs(self.dropout(states)), mask[:, ::2]
            states, last = block(states, mask)  # (B, S, D)
            final.append((last,))
        return Memory(self.dropout(states), mask, final[-1][0], final=tuple(final))


def join_pairs(states: Tensor) -> Tensor:
    """Concatenate pairs of neighbouring states (B, S, D): half as many, twice as wide.

    A single state at the end is paired with zeros.
    """
    batch, length, dim = states.shape
    return pad(states, (0, 0, 0, length % 2)).reshape(batch, -1, 2 * dim)
