"""Bottlenecks: states are made narrow, with what that costs; all an autoencoder knows is a code."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from regard.core.config import (
    AtLeast,
    Config,
    NonNegative,
    NonNegativeFloat,
    Positive,
)
from regard.core.module import Linear, Module

Terms = dict[str, Tensor]
"""What codes cost, by name: one number a code, already weighted."""


@dataclass(frozen=True, kw_only=True)
class PlainBottleneckConfig(Config):
    """One dense layer; narrower than what it reads, it is undercomplete."""

    kind: Literal["plain"] = "plain"
    """What kind of bottleneck this is."""
    dim: Positive = 32
    """Numbers of a code."""
    activation: Literal["linear", "tanh"] = "linear"
    """What follows the dense layer."""
    sparse: NonNegativeFloat = 0.0
    """Weight of the sum of the code's absolute values, which makes most of them small."""
    contractive: NonNegativeFloat = 0.0
    """Weight of the squared Jacobian of the code with respect to the states it is made of, which
    makes codes change little where states do. Linear codes have the same everywhere."""


@dataclass(frozen=True, kw_only=True)
class VariationalBottleneckConfig(Config):
    """A normal distribution for each source, from which its code is drawn."""

    kind: Literal["variational"] = "variational"
    """What kind of bottleneck this is."""
    dim: Positive = 32
    """Numbers of a code."""
    weight: NonNegativeFloat = 1.0
    """Weight of the divergence from the prior; with 1 the loss is the evidence lower bound."""
    annealing_steps: NonNegative = 0
    """Training batches over which this weight grows from 0 on; 0 = it is there at once."""
    free_bits: NonNegativeFloat = 0.0
    """Nats of divergence that cost nothing, in each number of a code."""


@dataclass(frozen=True, kw_only=True)
class RoundedBottleneckConfig(Config):
    """Codes of whole numbers, which can be written down in few bits."""

    kind: Literal["rounded"] = "rounded"
    """What kind of bottleneck this is."""
    dim: Positive = 32
    """Numbers of a code."""
    levels: Annotated[int, AtLeast(2)] = 5
    """How many whole numbers there are to choose from; 0 is the middle one, or the one above it."""


BottleneckConfig = PlainBottleneckConfig | VariationalBottleneckConfig | RoundedBottleneckConfig


class Bottleneck(Module, ABC):
    """Makes states narrow."""

    dim: int
    """Numbers of a code."""

    @abstractmethod
    def forward(self, states: Tensor) -> tuple[Tensor, Terms]:
        """Return the codes (..., D) of states (..., D), and what they cost, one number each."""


class PlainBottleneck(Bottleneck):
    """One dense layer, with penalties that make its codes sparse or slow to change.

    Contractive: the squared Frobenius norm of the Jacobian of the code with respect to the state
    that the layer reads (Rifai et al. 2011, eq. 7), not to the source before the encoder. Row i of
    this Jacobian is the derivative of the activation times row i of the weights.

    Args:
        config: The settings.
        dim: Width of the states.
    """

    def __init__(self, config: PlainBottleneckConfig, dim: int) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        self.code_map = Linear(dim, config.dim)

    def forward(self, states: Tensor) -> tuple[Tensor, Terms]:
        """Return the codes (..., D) of states (..., D), and what they cost, one number each."""
        code: Tensor = self.code_map(states)
        if self.config.activation == "tanh":
            code = code.tanh()
        terms = {}
        if self.config.sparse:
            terms["sparse"] = self.config.sparse * code.float().abs().sum(-1)
        if self.config.contractive:
            terms["contractive"] = self.config.contractive * self._squared_jacobian(code)
        return code, terms

    def _squared_jacobian(self, code: Tensor) -> Tensor:
        rows = self.code_map.weight.float().square().sum(1)  # (D,)
        is_bent = self.config.activation == "tanh"
        slopes = 1 - code.float().square() if is_bent else torch.ones_like(code, dtype=rows.dtype)
        return (slopes.square() * rows).sum(-1)


class VariationalBottleneck(Bottleneck):
    """Draws codes while training; otherwise a code is the mean (Kingma & Welling 2014).

    Annealing as in Bowman et al. 2016, but linear; free bits as in Kingma et al. 2016, eq. 15, but
    for each source by itself. Both are helps of training: otherwise the divergence counts whole.

    Args:
        config: The settings.
        dim: Width of the states.
    """

    step: Tensor

    def __init__(self, config: VariationalBottleneckConfig, dim: int) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        self.mean_map = Linear(dim, config.dim)
        self.log_variance_map = Linear(dim, config.dim)
        # A buffer, so that a resumed run goes on where it was.
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def posterior(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and logarithmic variance, (..., D) each, of states (..., D)."""
        return self.mean_map(states).float(), self.log_variance_map(states).float()

    def forward(self, states: Tensor) -> tuple[Tensor, Terms]:
        """Return the codes (..., D) of states (..., D), and what they cost, one number each."""
        mean, log_variance = self.posterior(states)
        divergence = divergence_from_prior(mean, log_variance)  # (..., D)
        if not self.training:
            return mean.to(states.dtype), {"kl": self.config.weight * divergence.sum(-1)}
        self.step += 1
        cost = self._annealed_weight() * divergence.clamp(min=self.config.free_bits).sum(-1)
        return draw_code(mean, log_variance).to(states.dtype), {"kl": cost}

    def _annealed_weight(self) -> float | Tensor:
        if not self.config.annealing_steps:
            return self.config.weight
        return self.config.weight * (self.step / self.config.annealing_steps).clamp(max=1)


class RoundedBottleneck(Bottleneck):
    """Codes of whole numbers; gradients pass as if nothing had been rounded (Bengio et al. 2013).

    Args:
        config: The settings.
        dim: Width of the states.
    """

    def __init__(self, config: RoundedBottleneckConfig, dim: int) -> None:
        super().__init__()
        self.dim = config.dim
        self.lowest = -(config.levels // 2)
        """The smallest number of a code."""
        self.highest = self.lowest + config.levels - 1
        """The largest number of a code."""
        self.code_map = Linear(dim, config.dim)

    def forward(self, states: Tensor) -> tuple[Tensor, Terms]:
        """Return the codes (..., D) of states (..., D); they cost nothing."""
        # Half a level more on both sides, so that the outer ones are as wide as the others.
        middle, half = (self.lowest + self.highest) / 2, (self.highest - self.lowest + 1) / 2
        smooth = middle + half * self.code_map(states).float().tanh()
        whole = smooth.detach().round().clamp(self.lowest, self.highest)
        # What is added is zero: it only lets the gradient through.
        return (whole + (smooth - smooth.detach())).to(states.dtype), {}


BOTTLENECKS: dict[type[Any], Callable[..., Bottleneck]] = {
    PlainBottleneckConfig: PlainBottleneck,
    VariationalBottleneckConfig: VariationalBottleneck,
    RoundedBottleneckConfig: RoundedBottleneck,
}


def build_bottleneck(config: BottleneckConfig, dim: int) -> Bottleneck:
    """Build the bottleneck that the settings describe, for states of this width."""
    return BOTTLENECKS[type(config)](config, dim)


def restart_annealing(model: nn.Module) -> None:
    """Let a model begin to learn anew with the weights that it has."""
    for module in model.modules():
        if isinstance(module, VariationalBottleneck):
            module.step.zero_()


def divergence_from_prior(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return KL(N(mean, variance) ‖ N(0, 1)) in nats for each number (Kingma & Welling, app. B)."""
    return (mean.square() + log_variance.exp() - 1 - log_variance) / 2


def draw_code(mean: Tensor, log_variance: Tensor, noise: Tensor | None = None) -> Tensor:
    """Draw from normal distributions so that gradients reach their parameters.

    Args:
        mean: (..., D).
        log_variance: (..., D), its logarithm.
        noise: (..., D), drawn from the standard normal distribution; if not given, it is drawn.
    """
    noise = torch.randn_like(mean) if noise is None else noise.to(mean.device)
    return mean + (log_variance / 2).exp() * noise
