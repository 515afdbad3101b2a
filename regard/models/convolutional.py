"""What the convolutional encoder and decoder share (Gehring et al. 2017).

Weight normalisation is left out: residuals scaled by √½ keep the variance steady at these depths.
"""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import glu

from regard.attention.positions import POSITIONS, Positions
from regard.core.config import Config, DropoutRate, Positive
from regard.core.module import Module
from regard.core.tables import pick

HALF = 0.5**0.5
"""The sum of two things of equal variance, times this, has that variance again."""


@dataclass(frozen=True, kw_only=True)
class ConvolutionConfig(Config):
    """What both sides of a convolutional model can be told."""

    embedding_dim: Positive = 256
    """Width of the embeddings, and of what attention compares."""
    dim: Positive = 256
    """Width of the states inside."""
    num_layers: Positive = 4
    """Number of gated convolutions."""
    kernel: Positive = 3
    """Positions that a convolution sees at once; odd in an encoder, so that it has a middle."""
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    """How order is told beyond the kernel."""
    max_length: Positive = 512
    """Most tokens; only learned positions have to know."""
    dropout: DropoutRate = 0.1
    """Dropout on the embeddings and before each convolution."""

    def build_positions(self) -> Positions:
        """Build the position encoding of the embeddings."""
        return pick(POSITIONS, self.positions, "positions")(
            dim=self.embedding_dim, num_heads=1, max_length=self.max_length
        )


class GatedConvolution(Module):
    """A convolution whose one half opens and closes the other (Dauphin et al. 2017)."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(dim, 2 * dim, kernel)

    def forward(self, states: Tensor) -> Tensor:
        """Transform (B, L, D) into (B, L - kernel + 1, D)."""
        gated = glu(self.convolution(states.transpose(1, 2)), dim=1)  # (B, D, L)
        return gated.transpose(1, 2)  # (B, L, D)
