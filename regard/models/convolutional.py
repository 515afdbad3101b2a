"""Shared parts of the convolutional encoder and decoder (Gehring et al. 2017).

Weight normalisation is omitted: residual sums scaled by √½ keep the variance constant.
"""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import glu

from regard.attention.positions import POSITIONS, Positions
from regard.core.config import Config, DropoutRate, Positive
from regard.core.module import Module
from regard.core.tables import pick

SQRT_HALF = 0.5**0.5
"""Factor that restores the variance after the sum of two terms of equal variance."""


@dataclass(frozen=True, kw_only=True)
class ConvolutionConfig(Config):
    """Hyperparameters shared by the convolutional encoder and decoder."""

    embedding_dim: Positive = 256
    """Width of the embeddings and of the attention queries and keys."""
    dim: Positive = 256
    """Width of the hidden states."""
    num_layers: Positive = 4
    """Number of gated convolutions."""
    kernel: Positive = 3
    """Kernel size of the convolutions; must be odd in an encoder."""
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    """Position encoding."""
    max_length: Positive = 512
    """Maximum number of tokens, for learned positions."""
    dropout: DropoutRate = 0.1
    """Dropout on the embeddings and before each convolution."""

    def build_positions(self) -> Positions:
        """Build the position encoding of the embeddings."""
        return pick(POSITIONS, self.positions, "positions")(
            dim=self.embedding_dim, num_heads=1, max_length=self.max_length
        )


class GatedConvolution(Module):
    """Convolution with a gated linear unit (Dauphin et al. 2017)."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(dim, 2 * dim, kernel)

    def forward(self, states: Tensor) -> Tensor:
        """Transform (B, L, D) into (B, L - kernel + 1, D)."""
        gated = glu(self.convolution(states.transpose(1, 2)), dim=1)  # (B, D, L)
        return gated.transpose(1, 2)  # (B, L, D)
