"""Latent vectors of autoencoders: sampling, interpolation, evidence lower bound, active units."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.core.config import within
from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result
from regard.models.bottlenecks import VariationalBottleneck, kl_from_standard_normal, sample_latent
from regard.tasks.base import Autoencodes
from regard.tasks.batches import map_batches

ACTIVE = 0.01
"""Minimum variance, over sources, of the posterior mean of an active unit (Burda et al. 2016)."""

MAX_LATENTS = 100_000
"""Maximum number of latents to sample or interpolate at once: they must fit in memory."""

EXAMPLES = (
    "e.g. of texts with `--recipe bowman2016-laptop` or of images with `--recipe kingma2014-laptop`"
)


def num_active_units(means: Tensor) -> int:
    """Return the number of active units of posterior means (B, D)."""
    return int((means.var(0, correction=0) > ACTIVE).sum())


def find_variational_bottleneck(task: Any) -> VariationalBottleneck | None:
    """Return the bottleneck of a variational autoencoder; None for any other model."""
    bottleneck = getattr(task.model.encoder, "bottleneck", None)
    return bottleneck if isinstance(bottleneck, VariationalBottleneck) else None


def measure_elbo(
    task: Any,
    examples: Sequence[Example],
    *,
    split: Callable[[Any], tuple[Tensor, Callable[[Tensor], Tensor]]],
    signature: str,
    per: dict[str, float],
    num_bootstrap: int,
) -> dict[str, Result]:
    """Measure the evidence lower bound, its KL divergence, and the number of active units.

    The reconstruction term is estimated from one sample per source, always the same one. The
    weight of the divergence and free bits do not apply. Return an empty dict if the bottleneck is
    not variational.

    Args:
        task: The autoencoder.
        examples: The test set.
        split: Returns the states of a batch before the bottleneck, and a function that computes
            the log-probability (B,) of its targets from latents of the shape of these states.
        signature: Signature of the results.
        per: Divisors of the bound, by the name of the quotient.
        num_bootstrap: Bootstrap samples of the confidence intervals; 0 = no intervals.
    """
    bottleneck, seed = find_variational_bottleneck(task), task.recipe.data.seed
    if bottleneck is None:
        return {}
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(examples), task.latent_dim, generator=generator)  # (B, D)

    @torch.inference_mode()
    def measure(batch: Any) -> Iterable[tuple[Tensor, Tensor, Tensor]]:
        states, compute_log_probs = split(batch)
        mean, log_variance = bottleneck.posterior(states)
        batch_noise = noise[list(batch.rows)].view(mean.shape)
        log_probs = compute_log_probs(sample_latent(mean, log_variance, batch_noise))
        divergence = kl_from_standard_normal(mean, log_variance).flatten(1).sum(1).cpu()
        return zip(log_probs, divergence, mean.flatten(1).cpu(), strict=True)

    measured = map_batches(measure, task.batches(examples), description="Encoding")
    log_probs, divergence, means = map(torch.stack, zip(*measured, strict=True))
    bound, kl, ones = log_probs - divergence, divergence.tolist(), [1.0] * len(log_probs)
    quotients = {name: float(bound.sum()) / number for name, number in per.items()}
    return {
        "elbo": ratio(
            "ELBO",
            bound.tolist(),
            ones,
            signature=f"{signature}|samples:1|sample-seed:{seed}",
            num_bootstrap=num_bootstrap,
            scale=1,
            detail={"reconstruction": float(log_probs.mean()), **quotients},
        ),
        "kl": ratio("KL", kl, ones, signature=signature, num_bootstrap=num_bootstrap, scale=1),
        "active_units": Result(
            "active units",
            num_active_units(means),
            f"variance of means>{ACTIVE:g}|of:{means.shape[1]}",
        ),
    }


def check_autoencoder(task: Any) -> None:
    """Raise a `ConfigError` unless a task has latents."""
    if not isinstance(task, Autoencodes):
        raise ConfigError(
            "This needs a run of an autoencoder, but the task of this run is "
            f"'{task.recipe.task}'. Train one, {EXAMPLES}."
        )


def check_latents(latents: Tensor, dim: int) -> None:
    """Raise a `DataError` unless latents are of shape (B, `dim`)."""
    if latents.dim() != 2 or latents.shape[1] != dim:
        raise DataError(
            f"`latents` must have the shape (B, {dim}), but has the shape {tuple(latents.shape)}."
        )


def sample_latents(task: Any, num: int, *, seed: int = 0) -> Tensor:
    """Sample latents (B, D) from the prior of a variational autoencoder.

    Args:
        task: The autoencoder.
        num: Number of samples; fewer samples are a prefix of more.
        seed: Seed of the samples.
    """
    check_autoencoder(task)
    within("num", num, low=1, high=MAX_LATENTS)
    within("seed", seed, low=0, high=2**63 - 1)
    if find_variational_bottleneck(task) is None:
        raise ConfigError(
            "Latents can be sampled only from a variational autoencoder, but the bottleneck of "
            "this run is not variational. Train one with `model.encoder.bottleneck.kind` "
            f"'variational', {EXAMPLES}."
        )
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randn(task.latent_dim, generator=generator) for _ in range(num)])


def interpolate(first: Tensor, last: Tensor, num: int) -> Tensor:
    """Interpolate linearly between two latents (D,): `num` latents (B, D), ends included."""
    within("steps", num, low=2, high=MAX_LATENTS)
    weights = torch.linspace(0, 1, num)[:, None]
    return torch.lerp(first[None], last[None], weights)  # (B, D)
