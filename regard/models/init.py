"""Weight initialisation by parameter name.

The formulas are those of torch. The standard deviation of `kaiming_normal` is gain / √fan with a
default gain of √2. Lectures sometimes write gain · √(2 / fan); with torch's gain for ReLU, which is
√2, that would count √2 twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.config import Config, NonNegativeFloat
from regard.core.tables import pick

Rule = Literal[
    "default",
    "uniform",
    "normal",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
    "orthogonal",
]


@dataclass(frozen=True, kw_only=True)
class InitConfig(Config):
    """Hyperparameters of weight initialisation. Biases are zero with all rules but 'default'."""

    rule: Rule = "default"
    """Rule for weight matrices; 'default' keeps the initialisation of each torch layer."""
    gain: NonNegativeFloat = 0.0
    """Factor of the standard deviation; 0 = √2 for kaiming, 1 for xavier and orthogonal."""
    fan_mode: Literal["fan_in", "fan_out"] = "fan_in"
    """Number that kaiming divides by: inputs of a unit, which keeps the variance of activations
    equal in every layer, or outputs, which keeps that of gradients equal."""
    scale: NonNegativeFloat = 0.08
    """Half width of 'uniform', standard deviation of 'normal'."""
    recurrent: Rule = "orthogonal"
    """Rule for the hidden-to-hidden matrices of recurrent layers, applied per gate."""
    embedding: Rule = "default"
    """Rule for embeddings."""
    forget_bias: float = 0.0
    """Added to the biases of the forget gates of LSTM layers (Jozefowicz et al. 2015)."""


def _kaiming_std(weight: Tensor, config: InitConfig) -> float:
    fan = nn.init._calculate_correct_fan(weight, config.fan_mode)
    return float((config.gain or 2**0.5) / fan**0.5)


def _kaiming_uniform(weight: Tensor, config: InitConfig) -> Tensor:
    bound = 3**0.5 * _kaiming_std(weight, config)
    return nn.init.uniform_(weight, -bound, bound)


INITIALIZERS: dict[str, Callable[[Tensor, InitConfig], Tensor]] = {
    "default": lambda weight, config: weight,
    "uniform": lambda weight, config: nn.init.uniform_(weight, -config.scale, config.scale),
    "normal": lambda weight, config: nn.init.normal_(weight, 0.0, config.scale),
    "xavier_uniform": lambda weight, config: nn.init.xavier_uniform_(weight, config.gain or 1.0),
    "xavier_normal": lambda weight, config: nn.init.xavier_normal_(weight, config.gain or 1.0),
    "kaiming_uniform": _kaiming_uniform,
    "kaiming_normal": lambda weight, config: nn.init.normal_(
        weight, 0.0, _kaiming_std(weight, config)
    ),
    "orthogonal": lambda weight, config: nn.init.orthogonal_(weight, config.gain or 1.0),
}


def initialize(model: nn.Module, config: InitConfig) -> None:
    """Initialise all parameters of a model, with a rule that depends on the parameter name."""
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            # The weight of a norm is a vector, too, and must stay at one.
            if config.rule != "default" and "bias" in name.rpartition(".")[2]:
                nn.init.zeros_(parameter)
        elif "weight_hh" in name:
            # A recurrent matrix consists of one square block per gate.
            for block in torch.split(parameter.data, parameter.shape[1]):
                pick(INITIALIZERS, config.recurrent, "recurrent")(block, config)
        elif "embedding" in name:
            pick(INITIALIZERS, config.embedding, "embedding")(parameter.data, config)
        else:
            pick(INITIALIZERS, config.rule, "rule")(parameter.data, config)
    if config.forget_bias:
        _raise_forget_gates(model, config.forget_bias)


def _raise_forget_gates(model: nn.Module, bias: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.LSTM):
            for name, parameter in module.named_parameters():
                if name.startswith("bias_ih"):
                    # The order of the gates is input, forget, cell, output.
                    parameter.data[module.hidden_size : 2 * module.hidden_size] += bias
