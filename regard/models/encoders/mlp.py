"""Multi-layer perceptron (MLP) encoder of images: one state for the whole image."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from regard.core.config import Config, DropoutRate, at_least
from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec
from regard.models.interfaces import Encoder, Memory, all_real
from regard.models.mlp import ActivationKind, MultiLayerPerceptron


@dataclass(frozen=True, kw_only=True)
class MlpEncoderConfig(Config):
    """Hyperparameters of the encoder."""

    kind: Literal["mlp"] = "mlp"
    """Kind of encoder."""
    dims: tuple[int, ...] = (256, 256)
    """Number of neurons of each layer; the last value is the width of the state."""
    activation: ActivationKind = "relu"
    """Activation function after each layer."""
    dropout: DropoutRate = 0.0
    """Dropout probability after each layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dims:
            raise ConfigError("`dims` must have at least one layer, but is empty.")
        for index, value in enumerate(self.dims):
            at_least(f"dims[{index}]", value, 1)


class MlpEncoder(Encoder):
    """Multi-layer perceptron over the flattened pixels of an image.

    Each neuron of the first layer has a weight for every pixel, so the weights are tied to absolute
    positions. The memory has one state, which is also the summary.

    Args:
        config: The hyperparameters.
        spec: Input specification of the images.
    """

    def __init__(self, config: MlpEncoderConfig, spec: ImageSpec) -> None:
        super().__init__()
        self.memory_dim = config.dims[-1]
        self.perceptron = MultiLayerPerceptron(
            spec.channels * spec.height * spec.width,
            config.dims,
            activation=config.activation,
            dropout=config.dropout,
        )

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode images (B, C, Y, X) into a `Memory`. There is no padding."""
        pixels = values.to(next(self.parameters()).dtype).flatten(1)
        states = self.perceptron(pixels)[:, None]  # (B, 1, D)
        return Memory(states, all_real(states), states[:, 0], layout=(1, 1))
