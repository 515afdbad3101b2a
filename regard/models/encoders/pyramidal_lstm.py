"""Pyramidal LSTM encoder: recurrent layers over audio, each half as long as the one below."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import pad

from regard.core.config import Config, DropoutRate, Positive
from regard.core.module import Dropout
from regard.core.specs import AudioSpec
from regard.models.interfaces import Encoder, Memory
from regard.models.recurrent import BothWays


@dataclass(frozen=True, kw_only=True)
class PyramidalLstmEncoderConfig(Config):
    """A pyramid of LSTMs that read in both directions."""

    kind: Literal["pyramidal_lstm"] = "pyramidal_lstm"
    """What kind of encoder this is."""
    dim: Positive = 256
    """Width of a layer's states in each direction; both together are the memory's."""
    num_layers: Positive = 4
    """Recurrent layers; each but the first reads pairs of what the one below says."""
    dropout: DropoutRate = 0.0
    """Dropout between the layers and on the states."""


class PyramidalLstmEncoder(Encoder):
    """Listens with a pyramid of bidirectional LSTMs (Chan et al. 2016, eq. 3-5).

    One state stands for 2^(layers - 1) frames, so that a decoder has few places to look at.

    Args:
        config: The settings.
        spec: The sizes of the frames.
    """

    def __init__(self, config: PyramidalLstmEncoderConfig, spec: AudioSpec) -> None:
        super().__init__()
        self.memory_dim = 2 * config.dim
        self.num_joined = 2 ** (config.num_layers - 1)
        widths = [spec.num_mels, *[2 * self.memory_dim] * (config.num_layers - 1)]
        self.blocks = nn.ModuleList(BothWays(width, config.dim) for width in widths)
        self.dropout = Dropout(config.dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Listen to log-mel frames (B, F, M) and return their `Memory`, which is shorter."""
        states = values.to(next(self.parameters()).dtype)
        mask, final = mask.to(values.device, non_blocking=True), []
        for number, block in enumerate(self.blocks):
            if number:
                states, mask = join_pairs(self.dropout(states)), mask[:, ::2]
            states, last = block(states, mask)  # (B, S, D)
            final.append((last,))
        return Memory(self.dropout(states), mask, final[-1][0], final=tuple(final))


def join_pairs(states: Tensor) -> Tensor:
    """Put each two neighbours side by side: (B, S, D) → half as many, twice as wide.

    An odd one at the end has zeros beside it, which is what padding holds.
    """
    batch, length, dim = states.shape
    return pad(states, (0, 0, 0, length % 2)).reshape(batch, -1, 2 * dim)
