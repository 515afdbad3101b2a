"""The codes of images: found, turned back into images, and measured where they are drawn."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.metrics.result import Result
from regard.models.bottlenecks import (
    VariationalBottleneck,
    divergence_from_prior,
    draw_code,
)
from regard.models.encoders.bottleneck import BottleneckEncoder, remember
from regard.tasks.image_to_image.metrics import in_order, log_densities, to_bytes
from regard.tasks.latents import tell_bound

if TYPE_CHECKING:
    from regard.tasks.image_to_image.task import ImageToImageTask

CHUNK = 256
"""Codes that are drawn at once."""


def encode(task: "ImageToImageTask", sources: Sequence[str]) -> Tensor:
    """Return the codes of sources as they are, (B, D): all states of a memory, side by side."""
    if not sources:
        return torch.zeros(0, _width(task))
    codes = []
    for batch, seen in task.see([Example(source, source) for source in sources]):
        with torch.inference_mode():
            memory = task.model.encoder(task.standardise(seen), batch.source_mask)
        codes.append((batch.rows, memory.states.flatten(1).float().cpu()))
    return in_order(codes)


def decode(task: "ImageToImageTask", codes: Tensor) -> Tensor:
    """Return the images that codes (B, D) stand for, (B, C, Y, X), in 8 bits."""
    if task.model.is_residual:
        raise ConfigError(
            "A model with `model.is_residual` draws on the source itself, so a code alone is no "
            "image. Train one without it."
        )
    if codes.dim() != 2 or codes.shape[1] != _width(task):
        raise DataError(
            f"`codes` must have {_width(task)} numbers each, but has the shape "
            f"{tuple(codes.shape)}."
        )
    drawn = [torch.zeros(0, *task.target.spec.shape, dtype=torch.uint8)]
    for init_from in range(0, len(codes), CHUNK):
        part = codes[init_from : init_from + CHUNK].to(task.device, torch.float32)
        states = part.view(len(part), task.model.num_cells, -1)  # (B, S, D)
        with torch.inference_mode():
            images = task.model.generate(remember(states, layout=task.model.layout))
        drawn.append(to_bytes(images).cpu())
    return torch.cat(drawn)


def measure_bound(
    task: "ImageToImageTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> dict[str, Result]:
    """Measure the evidence lower bound, its divergence, and how many numbers of a code are in use.

    The reconstruction is that of one code drawn for each image, always the same one. The bound is
    of the model itself: neither weight nor free bits change it. Without a variational bottleneck,
    there is none.

    Args:
        task: What draws.
        examples: Images.
        num_bootstrap: Samples behind the confidence intervals; 0 = none.
    """
    encoder = task.model.encoder
    if not isinstance(encoder, BottleneckEncoder):
        return {}
    if not isinstance(encoder.bottleneck, VariationalBottleneck):
        return {}
    seed, deviation = task.recipe.data.seed, task.recipe.model.deviation
    size = len(examples), task.model.num_cells, encoder.memory_dim
    noise = torch.randn(size, generator=torch.Generator().manual_seed(seed))  # (B, S, D)
    found = []
    for batch, seen in task.see(examples, has_noise=True):
        with torch.inference_mode():
            wide = encoder.widen(task.standardise(seen), batch.source_mask)
            mean, log_variance = encoder.bottleneck.posterior(wide.states)  # (B, S, D)
            code = draw_code(mean, log_variance, noise[list(batch.rows)])
            memory = remember(code, layout=task.model.layout)
            images = task.model.generate(memory, task.base_of(seen)).cpu()
            divergence = divergence_from_prior(mean, log_variance).flatten(1).sum(1).cpu()
        told = log_densities(images, batch.labels, deviation=deviation)  # (B,)
        numbers = torch.cat([told[:, None], divergence[:, None], mean.flatten(1).cpu()], dim=1)
        found.append((batch.rows, numbers))
    numbers = in_order(found)  # (B, D), the first two columns no codes
    told, divergence, means = numbers[:, 0], numbers[:, 1], numbers[:, 2:]
    num_values = math.prod(task.target.spec.shape)
    return tell_bound(
        told,
        divergence,
        means,
        how=f"nats an image|images:{len(examples)}|deviation:{deviation:g}",
        seed=seed,
        num_bootstrap=num_bootstrap,
        detail={"per_value": float((told - divergence).mean()) / num_values},
    )


def _width(task: "ImageToImageTask") -> int:
    return task.model.num_cells * task.model.encoder.memory_dim
