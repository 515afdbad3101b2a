"""What an autoencoder offers: the codes of sources, and what codes stand for."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.core.config import within
from regard.core.errors import ConfigError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result
from regard.models.bottlenecks import VariationalBottleneck
from regard.models.encoders.bottleneck import BottleneckEncoder

ACTIVE = 0.01
"""Variance of its mean over sources from which on a number of a code is in use (Burda et al.
2016)."""

MOST_CODES = 100_000
"""Codes that are drawn or mixed at once: they have to fit in memory."""

EXAMPLES = (
    "say of texts with `--recipe bowman2016-laptop` or of images with `--recipe kingma2014-laptop`"
)


@runtime_checkable
class Autoencoder(Protocol):
    """A task whose sources have codes that can be turned back."""

    def encode(self, sources: Sequence[Any]) -> Tensor:
        """Return the codes of sources, (B, D), in 32 bits and on the host."""

    def decode(self, codes: Tensor) -> list[str] | Tensor:
        """Return what codes (B, D) stand for: texts, or images (B, C, Y, X) in 8 bits."""


def num_active(means: Tensor) -> int:
    """Return how many numbers of codes (B, D) are in use: those that sources differ in."""
    return int((means.var(0, correction=0) > ACTIVE).sum())


def tell_bound(
    told: Tensor,
    divergence: Tensor,
    means: Tensor,
    *,
    how: str,
    seed: int,
    num_bootstrap: int,
    detail: dict[str, float],
) -> dict[str, Result]:
    """Tell the evidence lower bound, its divergence, and how many numbers of a code are in use.

    Args:
        told: (B,), the log-probability of each source by one code drawn for it.
        divergence: (B,), of each distribution of codes from the prior, in nats.
        means: (B, D), the middles of these distributions.
        how: What was measured, as a signature tells it.
        seed: Of the codes that were drawn.
        num_bootstrap: Samples behind the confidence intervals; 0 = none.
        detail: What else is told of the bound.
    """
    ones = [1.0] * len(told)
    return {
        "elbo": ratio(
            "ELBO",
            (told - divergence).tolist(),
            ones,
            signature=f"{how}|drawn:1|draw-seed:{seed}",
            num_bootstrap=num_bootstrap,
            scale=1,
            detail={"reconstruction": float(told.mean()), **detail},
        ),
        "kl": ratio(
            "KL", divergence.tolist(), ones, signature=how, num_bootstrap=num_bootstrap, scale=1
        ),
        "active_units": Result(
            "active units",
            num_active(means),
            f"variance of means>{ACTIVE:g}|of:{means.shape[1]}",
        ),
    }


def check_autoencoder(task: Any) -> None:
    """Raise a `ConfigError` unless a task has codes."""
    if not isinstance(task, Autoencoder):
        raise ConfigError(
            "This needs a run of an autoencoder, but the task of this run is "
            f"'{task.recipe.task}'. Train one, {EXAMPLES}."
        )


def draw_codes(task: Any, num: int, *, seed: int = 0) -> Tensor:
    """Draw codes (B, D) from the prior of a variational autoencoder.

    Args:
        task: The autoencoder.
        num: How many; more of them leave the first ones as they are.
        seed: Another seed draws others.
    """
    check_autoencoder(task)
    within("num", num, low=1, high=MOST_CODES)
    within("seed", seed, low=0, high=2**63 - 1)
    encoder = task.model.encoder
    is_narrow = isinstance(encoder, BottleneckEncoder)
    if not is_narrow or not isinstance(encoder.bottleneck, VariationalBottleneck):
        raise ConfigError(
            "Codes can be drawn only where training made them follow a known distribution, but "
            "this run has no variational code. Train one with `model.encoder.bottleneck.kind` "
            f"'variational', {EXAMPLES}."
        )
    # Images whose every cell has a code have many of them.
    width = getattr(task.model, "num_cells", 1) * encoder.memory_dim
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randn(width, generator=generator) for _ in range(num)])  # (B, D)


def mix_codes(first: Tensor, last: Tensor, num: int) -> Tensor:
    """Return `num` codes (B, D) on the straight line between two codes (D,), ends included."""
    within("steps", num, low=2, high=MOST_CODES)
    shares = torch.linspace(0, 1, num)[:, None]
    return torch.lerp(first[None], last[None], shares)  # (B, D)
