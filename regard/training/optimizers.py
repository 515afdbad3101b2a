"""Optimisers: their settings and the parameter groups they work on."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer

from regard.core.config import AtLeast, Config, Within
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.core.tables import near
from regard.training.muon import Muon


@dataclass(frozen=True, kw_only=True)
class _Common(Config):
    """Settings of every optimiser."""

    kind: str
    """Which optimiser."""
    learning_rate: Annotated[float, AtLeast(0)] = 0.001
    """Length of a step before the schedule."""
    weight_decay: Annotated[float, AtLeast(0)] = 0.0
    """Pull of the weights towards zero, added to the gradient."""


@dataclass(frozen=True, kw_only=True)
class SgdConfig(_Common):
    """Stochastic gradient descent."""

    kind: Literal["sgd"] = "sgd"
    learning_rate: float = 0.1
    momentum: Annotated[float, Within(0, 1)] = 0.0
    """Share of the last step that is taken again."""
    is_nesterov: bool = False
    """Whether the gradient is taken after the momentum (Nesterov 1983)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_nesterov and self.momentum == 0:
            raise ConfigError("`momentum` must be above 0 when `is_nesterov` is true, but is 0.0.")


@dataclass(frozen=True, kw_only=True)
class _Adaptive(_Common):
    """Settings of optimisers that divide by a mean of past gradients."""

    epsilon: Annotated[float, AtLeast(0)] = 1e-8
    """Added to the denominator."""


@dataclass(frozen=True, kw_only=True)
class AdagradConfig(_Adaptive):
    """Steps divided by the root of all squared gradients so far (Duchi et al. 2011)."""

    kind: Literal["adagrad"] = "adagrad"
    learning_rate: float = 0.01
    epsilon: float = 1e-10


@dataclass(frozen=True, kw_only=True)
class RmspropConfig(_Adaptive):
    """Steps divided by a moving root mean square of the gradients (Hinton 2012)."""

    kind: Literal["rmsprop"] = "rmsprop"
    alpha: Annotated[float, Within(0, 1)] = 0.99
    """How much of the moving average is kept at each step."""
    momentum: Annotated[float, Within(0, 1)] = 0.0
    """Share of the last step that is taken again."""


@dataclass(frozen=True, kw_only=True)
class _Moments(_Adaptive):
    """Settings of optimisers with two moving averages."""

    betas: tuple[float, float] = (0.9, 0.999)
    """How much of the two moving averages is kept at each step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for i, beta in enumerate(self.betas):
            if not 0 <= beta < 1:
                raise ConfigError(f"`betas[{i}]` must be at least 0 and below 1, but is {beta}.")


@dataclass(frozen=True, kw_only=True)
class AdamConfig(_Moments):
    """Moving averages of the gradient and of its square (Kingma and Ba 2015)."""

    kind: Literal["adam"] = "adam"


@dataclass(frozen=True, kw_only=True)
class AdamwConfig(_Moments):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    weight_decay: float = 0.01
    """Share of each weight taken away at each step, times the learning rate."""


@dataclass(frozen=True, kw_only=True)
class MuonConfig(_Moments):
    """Orthogonal steps for the matrices inside a model, AdamW for the rest (Jordan et al. 2024).

    Embeddings, output layers and vectors are the rest; rate and decay mean for both what they mean
    for AdamW (Liu et al. 2025).
    """

    kind: Literal["muon"] = "muon"
    momentum: Annotated[float, Within(0, 0.999)] = 0.95
    """How much of the moving average of a matrix's gradient is kept at each step."""
    betas: tuple[float, float] = (0.9, 0.95)
    """How much of the two moving averages of the rest is kept at each step."""
    weight_decay: float = 0.01
    """Share of each weight taken away at each step, times the learning rate."""


OptimizerConfig = SgdConfig | AdagradConfig | RmspropConfig | AdamConfig | AdamwConfig | MuonConfig
Groups = list[dict[str, Any]]

_ADAM = {"betas": "betas", "eps": "epsilon"}

OPTIMIZERS: dict[type, tuple[Callable[..., Optimizer], dict[str, str], tuple[str, ...]]] = {
    SgdConfig: (
        torch.optim.SGD,
        {"momentum": "momentum", "nesterov": "is_nesterov"},
        ("cpu", "cuda"),
    ),
    # Not every torch has a fused Adagrad for CUDA.
    AdagradConfig: (torch.optim.Adagrad, {"eps": "epsilon"}, ("cpu",)),
    RmspropConfig: (
        torch.optim.RMSprop,
        {"alpha": "alpha", "eps": "epsilon", "momentum": "momentum"},
        (),
    ),
    AdamConfig: (torch.optim.Adam, _ADAM, ("cpu", "cuda")),
    AdamwConfig: (torch.optim.AdamW, _ADAM, ("cpu", "cuda")),
    MuonConfig: (Muon, {"momentum": "momentum", **_ADAM}, ()),
}
"""Settings → class, its arguments by the name of our setting, devices with a fused version."""

OUTER_LAYERS = ("output",)
"""Names of output layers: one row for each token, label or pixel."""


def build_optimizer(
    config: OptimizerConfig, model: nn.Module, *, layer_decay: float = 1.0
) -> Optimizer:
    """Build the optimiser that `config` describes over the trainable parameters of `model`.

    Matrices and larger decay; vectors (biases, norms) do not: pulling those towards zero changes
    what a layer can say without making it simpler. Each group's `scale` is its share of the
    learning rate.

    Args:
        config: The settings.
        model: What is trained.
        layer_decay: Rate of a block as a share of the rate of the block above it.
    """
    scales = layer_scales(model, layer_decay)
    groups: Groups = []
    # The highest rate first; with one rate for all these are two groups.
    for scale in sorted(set(scales.values()), reverse=True):
        alike = [p for name, p in _trainable(model) if scales[name] == scale]
        matrices = [parameter for parameter in alike if parameter.dim() >= 2]
        vectors = [parameter for parameter in alike if parameter.dim() < 2]
        groups += [
            {"params": matrices, "weight_decay": config.weight_decay, "scale": scale},
            {"params": vectors, "weight_decay": 0.0, "scale": scale},
        ]
    if isinstance(config, MuonConfig):
        groups = split_hidden(groups, model)
    optimizer, names, fused_on = OPTIMIZERS[type(config)]
    arguments = {name: getattr(config, setting) for name, setting in names.items()}
    if fused_on and all(p.device.type in fused_on for _, p in _trainable(model)):
        arguments["fused"] = True
    groups = [group for group in groups if group["params"]]
    return optimizer(groups, lr=config.learning_rate, **arguments)


def split_hidden(groups: Groups, model: nn.Module) -> Groups:
    """Set apart the matrices inside a model, as `is_hidden`.

    Not inside are embeddings and output layers, whose rows belong to one token each.
    """
    outside = {
        id(parameter)
        for name, module in model.named_modules()
        for parameter in module.parameters(recurse=False)
        if parameter.dim() < 2
        or isinstance(module, nn.Embedding)
        or name.rpartition(".")[2] in OUTER_LAYERS
    }
    return [
        {**group, "params": own, "is_hidden": is_hidden}
        for group in groups
        for is_hidden in (True, False)
        if (own := [p for p in group["params"] if (id(p) not in outside) == is_hidden])
    ]


def layer_scales(model: nn.Module, decay: float) -> dict[str, float]:
    """Return each trainable parameter's share of the learning rate (Howard and Ruder 2018).

    A stack of layers is whatever is called `blocks`. Its last block has the whole rate, each one
    below the rate of the one above times `decay`, and what stands before the first block, the
    embeddings, once less. All else, the head above all, has the whole rate.
    """
    names = [name for name, _ in model.named_parameters()]
    depths = _stack_depths(names)
    if decay != 1.0 and not depths:
        logger.warning("`layer_decay` has no effect: the model has no stack of blocks")
    num_above = dict.fromkeys(names, 0)
    for owner, depth in depths.items():
        is_below = True  # a module's weights come in the order in which it was put together
        for name in names:
            if match := re.match(rf"{re.escape(owner)}blocks\.(\d+)\.", name):
                num_above[name] = depth - 1 - int(match[1])
                is_below = False
            elif is_below and name.startswith(owner):
                num_above[name] = depth
    return {name: decay ** num_above[name] for name, _ in _trainable(model)}


def _stack_depths(names: list[str]) -> dict[str, int]:
    """Find the stacks by what owns them, such as `encoder.`, and how many blocks each has."""
    depths: dict[str, int] = {}
    for name in names:
        if match := re.match(r"(.*?)blocks\.(\d+)\.", name):
            owner, number = match[1], int(match[2])
            depths[owner] = max(depths.get(owner, 0), number + 1)
    return depths


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Keep parameters as they are, all of those whose name begins with one of the prefixes.

    A prefix ends where a part of a name ends: `encoder.blocks.1` is not `encoder.blocks.10`.
    """
    parameters = dict(model.named_parameters())
    for prefix in prefixes:
        chosen = [name for name in parameters if f"{name}.".startswith(f"{prefix}.")]
        if not chosen:
            parts = [name.split(".") for name in parameters]
            known = sorted({".".join(own[: end + 1]) for own in parts for end in range(len(own))})
            shown = [part for part in known if part.count(".") <= prefix.count(".")]
            raise ConfigError(
                f"`freeze` must hold beginnings of names of weights, but '{prefix}' is none."
                f"{near(prefix, known)} There are: {', '.join(shown)}."
            )
        for name in chosen:
            parameters[name].requires_grad_(False)
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise ConfigError(
            f"`freeze` must leave something to train, but is {list(prefixes)}, which is all."
        )


def set_training(model: nn.Module) -> None:
    """Put a model into training mode, but for batch norms that are frozen.

    What those have counted belongs to what stays as it is.
    """
    model.train()
    for module in model.modules():
        is_trained = [parameter.requires_grad for parameter in module.parameters()]
        if isinstance(module, _BatchNorm) and is_trained and not any(is_trained):
            module.eval()


def _trainable(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]
