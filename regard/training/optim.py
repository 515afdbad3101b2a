"""Optimisers: their settings and the parameter groups they work on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer

from regard.core.config import at_least, within
from regard.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SgdConfig:
    """Stochastic gradient descent."""

    kind: Literal["sgd"] = "sgd"
    """Which optimiser."""
    learning_rate: float = 0.1
    """Length of a step before the schedule."""
    momentum: float = 0.0
    """Share of the last step that is taken again."""
    is_nesterov: bool = False
    """Whether the gradient is taken after the momentum (Nesterov 1983)."""
    weight_decay: float = 0.0
    """Pull of the weights towards zero, added to the gradient."""

    def __post_init__(self) -> None:
        _check_rates(self)
        within("momentum", self.momentum, low=0, high=1)
        if self.is_nesterov and self.momentum == 0:
            raise ConfigError("`momentum` must be above 0 when `is_nesterov` is true, but is 0.0.")


@dataclass(frozen=True, kw_only=True)
class AdagradConfig:
    """Steps divided by the root of all squared gradients so far (Duchi et al. 2011)."""

    kind: Literal["adagrad"] = "adagrad"
    """Which optimiser."""
    learning_rate: float = 0.01
    """Length of a step before the schedule."""
    epsilon: float = 1e-10
    """Added to the denominator."""
    weight_decay: float = 0.0
    """Pull of the weights towards zero, added to the gradient."""

    def __post_init__(self) -> None:
        _check_rates(self)


@dataclass(frozen=True, kw_only=True)
class RmspropConfig:
    """Steps divided by a moving root mean square of the gradients (Hinton 2012)."""

    kind: Literal["rmsprop"] = "rmsprop"
    """Which optimiser."""
    learning_rate: float = 0.001
    """Length of a step before the schedule."""
    alpha: float = 0.99
    """How much of the moving average is kept at each step."""
    epsilon: float = 1e-8
    """Added to the denominator."""
    momentum: float = 0.0
    """Share of the last step that is taken again."""
    weight_decay: float = 0.0
    """Pull of the weights towards zero, added to the gradient."""

    def __post_init__(self) -> None:
        _check_rates(self)
        within("alpha", self.alpha, low=0, high=1)
        within("momentum", self.momentum, low=0, high=1)


@dataclass(frozen=True, kw_only=True)
class AdamConfig:
    """Moving averages of the gradient and of its square (Kingma and Ba 2015)."""

    kind: Literal["adam"] = "adam"
    """Which optimiser."""
    learning_rate: float = 0.001
    """Length of a step before the schedule."""
    betas: tuple[float, float] = (0.9, 0.999)
    """How much of the two moving averages is kept at each step."""
    epsilon: float = 1e-8
    """Added to the denominator."""
    weight_decay: float = 0.0
    """Pull of the weights towards zero, added to the gradient."""

    def __post_init__(self) -> None:
        _check_rates(self)
        _check_betas(self.betas)


@dataclass(frozen=True, kw_only=True)
class AdamwConfig:
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    """Which optimiser."""
    learning_rate: float = 0.001
    """Length of a step before the schedule."""
    betas: tuple[float, float] = (0.9, 0.999)
    """How much of the two moving averages is kept at each step."""
    epsilon: float = 1e-8
    """Added to the denominator."""
    weight_decay: float = 0.01
    """Share of each weight taken away at each step, times the learning rate."""

    def __post_init__(self) -> None:
        _check_rates(self)
        _check_betas(self.betas)


OptimizerConfig = SgdConfig | AdagradConfig | RmspropConfig | AdamConfig | AdamwConfig
Groups = list[dict[str, Any]]


def build_optimizer(config: OptimizerConfig, model: nn.Module) -> Optimizer:
    """Build the optimiser that `config` describes over the trainable parameters of `model`.

    Matrices and larger decay; vectors (biases, norms) do not: pulling those towards zero changes
    what a layer can say without making it simpler.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in parameters if parameter.dim() >= 2]
    vectors = [parameter for parameter in parameters if parameter.dim() < 2]
    groups: Groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return OPTIMIZERS[type(config)](config, [group for group in groups if group["params"]])


def _sgd(config: SgdConfig, groups: Groups) -> Optimizer:
    return torch.optim.SGD(
        groups,
        lr=config.learning_rate,
        momentum=config.momentum,
        nesterov=config.is_nesterov,
        fused=_are_all_on(groups, "cpu", "cuda"),
    )


def _adagrad(config: AdagradConfig, groups: Groups) -> Optimizer:
    return torch.optim.Adagrad(
        groups,
        lr=config.learning_rate,
        eps=config.epsilon,
        fused=_are_all_on(groups, "cpu"),  # not in every torch for CUDA
    )


def _rmsprop(config: RmspropConfig, groups: Groups) -> Optimizer:
    return torch.optim.RMSprop(
        groups,
        lr=config.learning_rate,
        alpha=config.alpha,
        eps=config.epsilon,
        momentum=config.momentum,
    )


def _adam(config: AdamConfig, groups: Groups) -> Optimizer:
    return torch.optim.Adam(
        groups,
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.epsilon,
        fused=_are_all_on(groups, "cpu", "cuda"),
    )


def _adamw(config: AdamwConfig, groups: Groups) -> Optimizer:
    return torch.optim.AdamW(
        groups,
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.epsilon,
        fused=_are_all_on(groups, "cpu", "cuda"),
    )


OPTIMIZERS: dict[type, Callable[[Any, Groups], Optimizer]] = {
    SgdConfig: _sgd,
    AdagradConfig: _adagrad,
    RmspropConfig: _rmsprop,
    AdamConfig: _adam,
    AdamwConfig: _adamw,
}


def _are_all_on(groups: Groups, *devices: str) -> bool | None:
    # None leaves the choice of the second fastest road to torch; False would forbid it.
    fits = all(p.device.type in devices for group in groups for p in group["params"])
    return True if fits else None


def _check_rates(config: Any) -> None:
    at_least("learning_rate", config.learning_rate, 0)
    at_least("weight_decay", config.weight_decay, 0)
    if not isinstance(config, SgdConfig):
        at_least("epsilon", config.epsilon, 0)


def _check_betas(betas: tuple[float, float]) -> None:
    for i, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ConfigError(f"`betas[{i}]` must be at least 0 and below 1, but is {beta}.")
