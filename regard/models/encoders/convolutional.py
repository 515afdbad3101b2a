"""Convolutional encoder."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import pad

from regard.core.dropout import Dropout
from regard.core.errors import ConfigError
from regard.core.module import Embedding, Linear
from regard.core.specs import TextSpec
from regard.models.convolutional import SQRT_HALF, ConvolutionConfig, GatedConvolution
from regard.models.interfaces import Memory, TokenEncoder, masked_mean
from regard.models.transformer import add_positions


@dataclass(frozen=True, kw_only=True)
class ConvolutionEncoderConfig(ConvolutionConfig):
    """Hyperparameters of the encoder."""

    kind: Literal["convolution"] = "convolution"
    """Kind of encoder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel % 2 == 0:
            raise ConfigError(f"`kernel` must be odd in an encoder, but is {self.kernel}.")


class ConvolutionEncoder(TokenEncoder):
    """Encoder of gated convolutions (Gehring et al. 2017, section 3.2).

    The attention keys are the states z; the attention values are z + e with the embeddings e.
    """

    def __init__(self, config: ConvolutionEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.memory_dim = config.embedding_dim
        self.padding = config.kernel // 2
        self.embedding = Embedding(spec.vocab_size, config.embedding_dim)
        self.positions = config.build_positions()
        self.input_map = Linear(config.embedding_dim, config.dim)
        self.blocks = nn.ModuleList(
            GatedConvolution(config.dim, config.kernel) for _ in range(config.num_layers)
        )
        self.output_map = Linear(config.dim, config.embedding_dim)
        self.dropout = Dropout(config.dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode token ids (B, S) into a `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        is_real = mask[..., None]
        embedded = self.dropout(add_positions(self.embedding(values), self.positions))  # (B, S, D)
        states = self.input_map(embedded)
        for block in self.blocks:
            # Padding is zeroed before every layer, so results do not depend on it.
            inputs = self.dropout(states).masked_fill(~is_real, 0.0)
            states = (block(pad(inputs, (0, 0, self.padding, self.padding))) + states) * SQRT_HALF
        states = self.output_map(states)
        values_with_input = (states + embedded) * SQRT_HALF
        return Memory(
            states, mask, masked_mean(states, mask), values=values_with_input, tokens=values
        )
