"""Weight initialisation by parameter name.

The formulas are torch's own. Lectures sometimes write Kaiming's normal deviation as
gain · √(2 / fan); with torch's gain for ReLU, which is already √2, that counts √2 twice. Here, as
in torch, the deviation is gain / √fan, and the gain of the Kaiming rules is √2 unless it is set.
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
    """How weights start; biases under every rule but 'default' start at zero."""

    rule: Rule = "default"
    """Rule for weight matrices; 'default' keeps what each torch layer does by itself."""
    gain: NonNegativeFloat = 0.0
    """Factor on the deviation; 0 = the rule's own: √2 for kaiming, 1 for xavier and orthogonal."""
    scale: NonNegativeFloat = 0.08
    """Half width of 'uniform', deviation of 'normal'."""
    recurrent: Rule = "orthogonal"
    """Rule for the state-to-state matrices of recurrent layers, one gate at a time."""
    embedding: Rule = "default"
    """Rule for embeddings."""


def _kaiming_deviation(weight: Tensor, config: InitConfig) -> float:
    fan_in, _ = nn.init._calculate_fan_in_and_fan_out(weight)
    return float((config.gain or 2**0.5) / fan_in**0.5)


def _kaiming_uniform(weight: Tensor, config: InitConfig) -> Tensor:
    bound = 3**0.5 * _kaiming_deviation(weight, config)
    return nn.init.uniform_(weight, -bound, bound)


INITIALISERS: dict[str, Callable[[Tensor, InitConfig], Tensor]] = {
    "default": lambda weight, config: weight,
    "uniform": lambda weight, config: nn.init.uniform_(weight, -config.scale, config.scale),
    "normal": lambda weight, config: nn.init.normal_(weight, 0.0, config.scale),
    "xavier_uniform": lambda weight, config: nn.init.xavier_uniform_(weight, config.gain or 1.0),
    "xavier_normal": lambda weight, config: nn.init.xavier_normal_(weight, config.gain or 1.0),
    "kaiming_uniform": _kaiming_uniform,
    "kaiming_normal": lambda weight, config: nn.init.normal_(
        weight, 0.0, _kaiming_deviation(weight, config)
    ),
    "orthogonal": lambda weight, config: nn.init.orthogonal_(weight, config.gain or 1.0),
}


def initialise(model: nn.Module, config: InitConfig) -> None:
    """Give every parameter of a model its first value, by what its name says it is."""
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            # A norm's weight is a vector, too, and must stay at one.
            if config.rule != "default" and "bias" in name.rpartition(".")[2]:
                nn.init.zeros_(parameter)
        elif "weight_hh" in name:
            # A recurrent matrix holds one square block a gate; each is a map of its own.
            for block in torch.split(parameter.data, parameter.shape[1]):
                pick(INITIALISERS, config.recurrent, "recurrent")(block, config)
        elif "embedding" in name:
            pick(INITIALISERS, config.embedding, "embedding")(parameter.data, config)
        else:
            pick(INITIALISERS, config.rule, "rule")(parameter.data, config)
