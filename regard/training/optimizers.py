"""Optimisers: settings, parameter groups and freezing."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer

from regard.core.config import AtLeast, Config, PerKind, Within
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.core.tables import did_you_mean
from regard.training.updates.muon import Muon


@dataclass(frozen=True, kw_only=True)
class _Common(Config):
    """Settings of every optimiser."""

    kind: str
    """Name of the optimiser."""
    learning_rate: Annotated[float, AtLeast(0), PerKind()] = 0.001
    """Base learning rate, multiplied by the schedule."""
    weight_decay: Annotated[float, AtLeast(0), PerKind()] = 0.0
    """L2 penalty, added to the gradient."""


@dataclass(frozen=True, kw_only=True)
class SgdConfig(_Common):
    """Stochastic gradient descent."""

    kind: Literal["sgd"] = "sgd"
    learning_rate: float = 0.1
    momentum: Annotated[float, Within(0, 1)] = 0.0
    """Momentum factor."""
    is_nesterov: bool = False
    """Whether to use Nesterov momentum (Nesterov 1983)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_nesterov and self.momentum == 0:
            raise ConfigError("`momentum` must be above 0 when `is_nesterov` is true, but is 0.0.")


@dataclass(frozen=True, kw_only=True)
class _Adaptive(_Common):
    """Settings of optimisers that divide by a root mean square of past gradients."""

    epsilon: Annotated[float, AtLeast(0)] = 1e-8
    """Added to the denominator."""


@dataclass(frozen=True, kw_only=True)
class AdagradConfig(_Adaptive):
    """Adagrad: updates divided by the root of the summed squared gradients (Duchi et al. 2011)."""

    kind: Literal["adagrad"] = "adagrad"
    learning_rate: float = 0.01
    epsilon: float = 1e-10


@dataclass(frozen=True, kw_only=True)
class RmspropConfig(_Adaptive):
    """RMSprop: updates divided by a moving root mean square of gradients (Hinton 2012)."""

    kind: Literal["rmsprop"] = "rmsprop"
    alpha: Annotated[float, Within(0, 1)] = 0.99
    """Decay rate of the moving average."""
    momentum: Annotated[float, Within(0, 1)] = 0.0
    """Momentum factor."""


@dataclass(frozen=True, kw_only=True)
class _Moments(_Adaptive):
    """Settings of optimisers with moving averages of the gradient and of its square."""

    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of the moving averages of the gradient and of its square."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for i, beta in enumerate(self.betas):
            if not 0 <= beta < 1:
                raise ConfigError(f"`betas[{i}]` must be at least 0 and below 1, but is {beta}.")


@dataclass(frozen=True, kw_only=True)
class AdamConfig(_Moments):
    """Adam (Kingma and Ba 2015)."""

    kind: Literal["adam"] = "adam"


@dataclass(frozen=True, kw_only=True)
class AdamwConfig(_Moments):
    """AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    weight_decay: float = 0.01
    """Decoupled weight decay, multiplied by the learning rate."""


@dataclass(frozen=True, kw_only=True)
class MuonConfig(_Moments):
    """Muon for hidden matrices, AdamW for other parameters (Jordan et al. 2024).

    The other parameters are embeddings, output layers and vectors. Learning rate and weight decay
    have the scale of AdamW for both (Liu et al. 2025).
    """

    kind: Literal["muon"] = "muon"
    momentum: Annotated[float, Within(0, 0.999)] = 0.95
    """Decay rate of the moving average of the gradients of hidden matrices."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Decay rates of the two moving averages of AdamW."""
    weight_decay: float = 0.01
    """Decoupled weight decay, multiplied by the learning rate."""


OptimizerConfig = SgdConfig | AdagradConfig | RmspropConfig | AdamConfig | AdamwConfig | MuonConfig
Groups = list[dict[str, Any]]

_ADAM = {"betas": "betas", "eps": "epsilon"}

OPTIMIZERS: dict[type, tuple[Callable[..., Optimizer], dict[str, str], tuple[str, ...]]] = {
    SgdConfig: (
        torch.optim.SGD,
        {"momentum": "momentum", "nesterov": "is_nesterov"},
        ("cpu", "cuda"),
    ),
    # Not every version of torch has a fused Adagrad for CUDA.
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
"""Settings → class, setting name of each argument, devices with a fused implementation."""

OUTER_LAYERS = ("output",)
"""Names of output layers, which have one row per token, label or pixel."""


def build_optimizer(
    config: OptimizerConfig, model: nn.Module, *, layer_decay: float = 1.0
) -> Optimizer:
    """Build the optimiser of the trainable parameters of `model`.

    Weight decay applies to matrices and larger tensors, not to vectors (biases, norms). Each
    group's `scale` is its factor of the learning rate.

    Args:
        config: Optimiser settings.
        model: Model to train.
        layer_decay: Factor between the learning rates of a block and of the block above it.
    """
    scales = layer_scales(model, layer_decay)
    groups: Groups = []
    # Highest learning rate first. With one learning rate there are two groups.
    for scale in sorted(set(scales.values()), reverse=True):
        parameters = [p for name, p in _trainable(model) if scales[name] == scale]
        matrices = [parameter for parameter in parameters if parameter.dim() >= 2]
        vectors = [parameter for parameter in parameters if parameter.dim() < 2]
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
    """Split groups into hidden matrices, marked `is_hidden`, and other parameters.

    Embeddings and output layers are not hidden: each of their rows belongs to one token.
    """
    not_hidden = {
        id(parameter)
        for name, module in model.named_modules()
        for parameter in module.parameters(recurse=False)
        if parameter.dim() < 2
        or isinstance(module, nn.Embedding)
        or name.rpartition(".")[2] in OUTER_LAYERS
    }
    return [
        {**group, "params": parameters, "is_hidden": is_hidden}
        for group in groups
        for is_hidden in (True, False)
        if (parameters := [p for p in group["params"] if (id(p) not in not_hidden) == is_hidden])
    ]


def layer_scales(model: nn.Module, decay: float) -> dict[str, float]:
    """Return the learning-rate factor of each trainable parameter (Howard and Ruder 2018).

    A stack of layers is a module named `blocks`. Its last block has factor 1, and each block
    below has the factor of the block above times `decay`. Parameters before the first block
    (embeddings) have the factor of the first block times `decay`. All other parameters, such as
    the classification head, have factor 1.
    """
    names = [name for name, _ in model.named_parameters()]
    depths = _stack_depths(names)
    if decay != 1.0 and not depths:
        logger.warning("`layer_decay` has no effect: the model has no stack of blocks")
    num_above = dict.fromkeys(names, 0)
    for owner, depth in depths.items():
        is_below = True  # parameters are listed in the order of their registration
        for name in names:
            if match := re.match(rf"{re.escape(owner)}blocks\.(\d+)\.", name):
                num_above[name] = depth - 1 - int(match[1])
                is_below = False
            elif is_below and name.startswith(owner):
                num_above[name] = depth
    return {name: decay ** num_above[name] for name, _ in _trainable(model)}


def _stack_depths(names: list[str]) -> dict[str, int]:
    """Return the number of blocks of each stack, by the prefix of its owner, such as `encoder.`."""
    depths: dict[str, int] = {}
    for name in names:
        if match := re.match(r"(.*?)blocks\.(\d+)\.", name):
            owner, number = match[1], int(match[2])
            depths[owner] = max(depths.get(owner, 0), number + 1)
    return depths


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Freeze the parameters whose name starts with one of the prefixes.

    A prefix is compared part by part: `encoder.blocks.1` does not match `encoder.blocks.10`.
    """
    parameters = dict(model.named_parameters())
    for prefix in prefixes:
        chosen = [name for name in parameters if f"{name}.".startswith(f"{prefix}.")]
        if not chosen:
            parts = [name.split(".") for name in parameters]
            known = sorted({".".join(p[: end + 1]) for p in parts for end in range(len(p))})
            shown = [part for part in known if part.count(".") <= prefix.count(".")]
            raise ConfigError(
                f"`freeze` must list prefixes of parameter names, but '{prefix}' matches none."
                f"{did_you_mean(prefix, known)} Choices: {', '.join(shown)}."
            )
        for name in chosen:
            parameters[name].requires_grad_(False)
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise ConfigError(
            f"`freeze` must leave parameters to train, but {list(prefixes)} matches all of them."
        )


def set_training(model: nn.Module) -> None:
    """Put a model into training mode, except for frozen batch norms.

    The running statistics of frozen batch norms must not change.
    """
    model.train()
    for module in model.modules():
        is_trained = [parameter.requires_grad for parameter in module.parameters()]
        if isinstance(module, _BatchNorm) and is_trained and not any(is_trained):
            module.eval()


def _trainable(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]
