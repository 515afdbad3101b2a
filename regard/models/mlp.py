"""Multi-layer perceptron: linear layers, each followed by an activation function."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import gelu, silu

from regard.core.dropout import Dropout
from regard.core.module import Linear, Module, ModuleList
from regard.core.tables import pick

ActivationKind = Literal["relu", "tanh", "sigmoid", "gelu", "silu", "identity"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": gelu,
    "silu": silu,
    "identity": lambda inputs: inputs,
}
"""Activation functions σ by name."""


class MultiLayerPerceptron(Module):
    """Multi-layer perceptron σ(W^L … σ(W¹x + b¹) … + b^L), with σ after every layer.

    Args:
        input_dim: Width of the input x.
        dims: Number of neurons of each layer, the last of which is the width of the output.
        activation: Name of the activation function σ.
        dropout: Dropout probability after each layer.
    """

    def __init__(
        self,
        input_dim: int,
        dims: Sequence[int],
        *,
        activation: ActivationKind = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        widths = [input_dim, *dims]
        self.layers = ModuleList[Linear](map(Linear, widths, dims))
        self.activation = pick(ACTIVATIONS, activation, "activation")
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map inputs (..., D) to the activations of the last layer."""
        states = inputs
        for layer in self.layers:
            states = self.dropout(self.activation(layer(states)))
        return states
