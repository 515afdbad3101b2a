"""Bottlenecks of autoencoders: plain, variational and rounded latents, with their loss terms."""

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

LossTerms = dict[str, Tensor]
"""Loss terms of latents by name, already weighted, one value per latent vector."""


@dataclass(frozen=True, kw_only=True)
class PlainBottleneckConfig(Config):
    """Linear bottleneck, optionally with tanh, sparse or contractive."""

    kind: Literal["plain"] = "plain"
    """Kind of bottleneck."""
    dim: Positive = 32
    """Width of the latent."""
    activation: Literal["linear", "tanh"] = "linear"
    """Activation of the linear layer."""
    sparse: NonNegativeFloat = 0.0
    """Weight of the L1 penalty on the latent."""
    contractive: NonNegativeFloat = 0.0
    """Weight of the squared Frobenius norm of the Jacobian of the latent with respect to the
    encoder states. For a linear latent the Jacobian is constant."""


@dataclass(frozen=True, kw_only=True)
class VariationalBottleneckConfig(Config):
    """Variational bottleneck: the latent is sampled from a normal distribution per source."""

    kind: Literal["variational"] = "variational"
    """Kind of bottleneck."""
    dim: Positive = 32
    """Width of the latent."""
    weight: NonNegativeFloat = 1.0
    """Weight of the KL divergence from the prior; with 1 the loss is the evidence lower bound."""
    annealing_steps: NonNegative = 0
    """Training batches over which this weight grows linearly from 0; 0 = no annealing."""
    free_bits: NonNegativeFloat = 0.0
    """KL divergence in nats per latent dimension that is not penalised."""


@dataclass(frozen=True, kw_only=True)
class RoundedBottleneckConfig(Config):
    """Bottleneck with integer latents, for compression."""

    kind: Literal["rounded"] = "rounded"
    """Kind of bottleneck."""
    dim: Positive = 32
    """Width of the latent."""
    levels: Annotated[int, AtLeast(2)] = 5
    """Number of integer levels, centred at 0; if even, there is one more below 0 than above."""


BottleneckConfig = PlainBottleneckConfig | VariationalBottleneckConfig | RoundedBottleneckConfig


class Bottleneck(Module, ABC):
    """Base class of bottlenecks: a map from encoder states to latents."""

    dim: int
    """Width of the latent."""

    @abstractmethod
    def forward(self, states: Tensor) -> tuple[Tensor, LossTerms]:
        """Return the latents (..., D) of states (..., D) and their loss terms."""


class PlainBottleneck(Bottleneck):
    """Linear layer with optional sparse and contractive penalties.

    The contractive penalty is the squared Frobenius norm of the Jacobian of the latent with respect
    to the encoder state (Rifai et al. 2011, eq. 7), not to the source. Row i of this Jacobian is
    the derivative of the activation times row i of the weights.

    Args:
        config: The hyperparameters.
        dim: Width of the states.
    """

    def __init__(self, config: PlainBottleneckConfig, dim: int) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        self.code_map = Linear(dim, config.dim)

    def forward(self, states: Tensor) -> tuple[Tensor, LossTerms]:
        """Return the latents (..., D) of states (..., D) and their loss terms."""
        latent: Tensor = self.code_map(states)
        if self.config.activation == "tanh":
            latent = latent.tanh()
        terms = {}
        if self.config.sparse:
            terms["sparse"] = self.config.sparse * latent.float().abs().sum(-1)
        if self.config.contractive:
            terms["contractive"] = self.config.contractive * self._squared_jacobian(latent)
        return latent, terms

    def _squared_jacobian(self, latent: Tensor) -> Tensor:
        rows = self.code_map.weight.float().square().sum(1)  # (D,)
        has_tanh = self.config.activation == "tanh"
        ones = torch.ones_like(latent, dtype=rows.dtype)
        slopes = 1 - latent.float().square() if has_tanh else ones
        return (slopes.square() * rows).sum(-1)


class VariationalBottleneck(Bottleneck):
    """Bottleneck of a variational autoencoder (Kingma & Welling 2014).

    Latents are sampled in training and are the mean of the posterior otherwise.
    KL annealing as in Bowman et al. 2016, but linear. Free bits as in Kingma et al. 2016, eq. 15,
    but per source. Both apply in training only.

    Args:
        config: The hyperparameters.
        dim: Width of the states.
    """

    step: Tensor

    def __init__(self, config: VariationalBottleneckConfig, dim: int) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        self.mean_map = Linear(dim, config.dim)
        self.log_variance_map = Linear(dim, config.dim)
        # A buffer, so that a resumed run continues the annealing.
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def posterior(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance, (..., D) each, of states (..., D)."""
        return self.mean_map(states).float(), self.log_variance_map(states).float()

    def forward(self, states: Tensor) -> tuple[Tensor, LossTerms]:
        """Return the latents (..., D) of states (..., D) and their loss terms."""
        mean, log_variance = self.posterior(states)
        divergence = kl_from_standard_normal(mean, log_variance)  # (..., D)
        if not self.training:
            return mean.to(states.dtype), {"kl": self.config.weight * divergence.sum(-1)}
        self.step += 1
        loss = self._annealed_weight() * divergence.clamp(min=self.config.free_bits).sum(-1)
        return sample_latent(mean, log_variance).to(states.dtype), {"kl": loss}

    def _annealed_weight(self) -> float | Tensor:
        if not self.config.annealing_steps:
            return self.config.weight
        return self.config.weight * (self.step / self.config.annealing_steps).clamp(max=1)


class RoundedBottleneck(Bottleneck):
    """Integer latents with straight-through gradients (Bengio et al. 2013).

    Args:
        config: The hyperparameters.
        dim: Width of the states.
    """

    def __init__(self, config: RoundedBottleneckConfig, dim: int) -> None:
        super().__init__()
        self.dim = config.dim
        self.lowest = -(config.levels // 2)
        """The smallest value of a latent."""
        self.highest = self.lowest + config.levels - 1
        """The largest value of a latent."""
        self.code_map = Linear(dim, config.dim)

    def forward(self, states: Tensor) -> tuple[Tensor, LossTerms]:
        """Return the latents (..., D) of states (..., D); there are no loss terms."""
        # Half a level more on both sides, so that the outer levels are as wide as the others.
        middle, half = (self.lowest + self.highest) / 2, (self.highest - self.lowest + 1) / 2
        smooth = middle + half * self.code_map(states).float().tanh()
        rounded = smooth.detach().round().clamp(self.lowest, self.highest)
        # Straight-through estimator: the added term is zero and passes the gradient.
        return (rounded + (smooth - smooth.detach())).to(states.dtype), {}


BOTTLENECKS: dict[type[Any], Callable[..., Bottleneck]] = {
    PlainBottleneckConfig: PlainBottleneck,
    VariationalBottleneckConfig: VariationalBottleneck,
    RoundedBottleneckConfig: RoundedBottleneck,
}


def build_bottleneck(config: BottleneckConfig, dim: int) -> Bottleneck:
    """Build a bottleneck from its hyperparameters, for states of width `dim`."""
    return BOTTLENECKS[type(config)](config, dim)


def restart_annealing(model: nn.Module) -> None:
    """Reset the KL annealing of a model, to train it again from its current weights."""
    for module in model.modules():
        if isinstance(module, VariationalBottleneck):
            module.step.zero_()


def kl_from_standard_normal(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return KL(N(mean, variance) ‖ N(0, 1)) in nats per dimension (Kingma & Welling, app. B)."""
    return (mean.square() + log_variance.exp() - 1 - log_variance) / 2


def sample_latent(mean: Tensor, log_variance: Tensor, noise: Tensor | None = None) -> Tensor:
    """Sample from normal distributions with the reparameterisation trick.

    Args:
        mean: (..., D).
        log_variance: (..., D).
        noise: (..., D), standard normal noise; sampled if not given.
    """
    noise = torch.randn_like(mean) if noise is None else noise.to(mean.device)
    return mean + (log_variance / 2).exp() * noise
