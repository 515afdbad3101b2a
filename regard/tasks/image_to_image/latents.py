"""Latents of image autoencoders: encode, decode, and the evidence lower bound."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.labels import LabelledBatch
from regard.metrics.result import Result
from regard.models.bottlenecks import (
    VariationalBottleneck,
    divergence_from_prior,
    draw_code,
)
from regard.models.encoders.bottleneck import BottleneckEncoder, remember
from regard.tasks import latents
from regard.tasks.batches import map_batches
from regard.tasks.image_to_image.metrics import log_densities, to_bytes

if TYPE_CHECKING:
    from regard.tasks.image_to_image.task import ImageToImageTask

CHUNK = 256
"""Latents that are decoded at once."""


def encode(task: "ImageToImageTask", sources: Sequence[str]) -> Tensor:
    """Return the latents of sources, (B, D): all states of a memory, side by side."""
    if not sources:
        return torch.zeros(0, _width(task))
    examples = [Example(source, source) for source in sources]

    @torch.inference_mode()
    def encode_batch(batch: LabelledBatch) -> Tensor:
        inputs = task.standardise(task.pixels(batch, examples))
        memory = task.model.encoder(inputs, batch.source_mask)
        return memory.states.flatten(1).float().cpu()

    return torch.stack(map_batches(encode_batch, task.batches(examples)))


def decode(task: "ImageToImageTask", vectors: Tensor) -> Tensor:
    """Return images (B, C, Y, X) in 8 bits from latents (B, D)."""
    if task.model.is_residual:
        raise ConfigError(
            "A model with `model.is_residual` draws on the source itself, so a code alone is no "
            "image. Train one without it."
        )
    latents.check_latents(vectors, _width(task))
    images = [torch.zeros(0, *task.target.spec.shape, dtype=torch.uint8)]
    for chunk in torch.split(vectors, CHUNK) if len(vectors) else ():
        states = chunk.to(task.device, torch.float32).view(len(chunk), task.model.num_cells, -1)
        with torch.inference_mode():
            generated = task.model.generate(remember(states, layout=task.model.layout))
        images.append(to_bytes(generated).cpu())
    return torch.cat(images)


def measure_bound(
    task: "ImageToImageTask", examples: Sequence[Example], *, num_bootstrap: int = 0
) -> dict[str, Result]:
    """Measure the evidence lower bound, its divergence, and the number of active units.

    The reconstruction is that of one sample per image, always the same one. The bound is that of
    the model itself: neither weight nor free bits change it. Without a variational bottleneck,
    there is none.

    Args:
        task: The task.
        examples: Images.
        num_bootstrap: Bootstrap samples of the confidence intervals; 0 = no intervals.
    """
    encoder = task.model.encoder
    if not isinstance(encoder, BottleneckEncoder):
        return {}
    bottleneck = encoder.bottleneck
    if not isinstance(bottleneck, VariationalBottleneck):
        return {}
    seed, std = task.recipe.data.seed, task.recipe.model.deviation
    size = len(examples), task.model.num_cells, encoder.memory_dim
    noise = torch.randn(size, generator=torch.Generator().manual_seed(seed))  # (B, S, D)

    @torch.inference_mode()
    def measure(batch: LabelledBatch) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        pixels = task.pixels(batch, examples, has_noise=True)
        wide = encoder.widen(task.standardise(pixels), batch.source_mask)
        mean, log_variance = bottleneck.posterior(wide.states)  # (B, S, D)
        memory = remember(
            draw_code(mean, log_variance, noise[list(batch.rows)]), layout=task.model.layout
        )
        images = task.model.generate(memory, task.base_of(pixels)).cpu()
        log_probs = log_densities(images, batch.labels, deviation=std)  # (B,)
        divergence = divergence_from_prior(mean, log_variance).flatten(1).sum(1).cpu()
        return zip(log_probs, divergence, mean.flatten(1).cpu(), strict=True)

    return latents.measure_bound(
        measure,
        task.batches(examples),
        how=f"nats an image|images:{len(examples)}|deviation:{std:g}",
        seed=seed,
        per={"per_value": len(examples) * math.prod(task.target.spec.shape)},
        num_bootstrap=num_bootstrap,
    )


def _width(task: "ImageToImageTask") -> int:
    return task.model.num_cells * task.model.encoder.memory_dim
