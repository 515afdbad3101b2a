"""Drawn images: laid out beside the right ones, and measured beside what the source is worth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.example import Example
from regard.metrics.grouping import Group
from regard.metrics.result import Result
from regard.metrics.vision.images import decibels, mse, psnr, ssim
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.prediction import Picture, as_picture
from regard.training.losses import log_constant

MOST_FRAMES = 3
"""Frames of a video that are shown, the last ones."""


@dataclass(frozen=True)
class Drawings:
    """What was drawn for some sources, with all that it is compared with; on the host."""

    values: Tensor
    """(B, C, Y, X), where black is 0 and white is 1; values may lie beyond."""
    right: Tensor
    """(B, C, Y, X), what should have been drawn, in 8 bits."""
    seen: Tensor
    """(B, C, Y, X), or (B, F, C, Y, X), the sources with their noise, in 8 bits."""
    base: Tensor
    """(B, C, Y, X), the sources in the form of the target, in 8 bits."""
    costs: Tensor
    """(B,), what each memory costs."""

    @property
    def pixels(self) -> Tensor:
        """(B, C, Y, X), what was drawn, in 8 bits."""
        return to_bytes(self.values)

    def log_densities(self, deviation: float) -> Tensor:
        """Return the logarithm of the normal density of each right image: (B,)."""
        return log_densities(self.values, self.right, deviation=deviation)

    def psnr(self) -> NDArray[np.float64]:
        """Return the peak signal-to-noise ratio of each image in dB."""
        return decibels(self.pixels.numpy(), self.right.numpy())


def to_bytes(values: Tensor) -> Tensor:
    """Turn values from 0 to 1 into bytes; what lies beyond is cut."""
    return (values.clamp(0, 1) * 255).round().byte()


def log_densities(values: Tensor, right: Tensor, *, deviation: float) -> Tensor:
    """Return the logarithm of the normal density of each image around what was drawn: (B,).

    Args:
        values: (B, C, Y, X), what was drawn, from 0 to 1.
        right: (B, C, Y, X), the images, in 8 bits.
        deviation: Of each value.
    """
    errors = (values - right / 255).square().flatten(1).sum(1)  # (B,)
    return -errors / (2 * deviation**2) - log_constant(deviation) * right[0].numel()


def in_order(parts: Sequence[tuple[Sequence[int], Tensor]]) -> Tensor:
    """Put together what was found batch by batch, in the order of the examples.

    Args:
        parts: Of each batch, which examples it holds and what was found, (B, ...).
    """
    rows = torch.tensor([row for batch_rows, _ in parts for row in batch_rows])
    return torch.cat([part for _, part in parts])[rows.argsort()]


def lay_out(found: Drawings) -> list[Picture]:
    """Return the first source, what was drawn for it, and what is right."""
    seen = found.seen[0] if found.seen.dim() == 5 else found.seen[:1]  # (F, C, Y, X)
    names = [f"frame {number}" for number in range(1, len(seen) + 1)]
    if len(seen) == 1:
        names = ["source"]
    shown = [Picture(as_picture(one), name) for one, name in zip(seen, names, strict=True)]
    drawn = Picture(as_picture(found.pixels[0]), "drawn", f"{found.psnr()[0]:.1f} dB")
    return [*shown[-MOST_FRAMES:], drawn, Picture(as_picture(found.right[0]), "right")]


def evaluate_pictures(
    found: Drawings,
    examples: Sequence[Example],
    *,
    change: str,
    seconds: float,
    num_bootstrap: int = 0,
) -> Evaluation:
    """Measure what was drawn for a test set.

    Args:
        found: What was drawn.
        examples: What was asked.
        change: What the sources lack; where they lack nothing, they are no baseline.
        seconds: How long it took to draw.
        num_bootstrap: Samples behind each confidence interval; 0 = none.
    """
    drawn, right = found.pixels.numpy(), found.right.numpy()
    results = {
        "psnr": psnr(drawn, right, num_bootstrap=num_bootstrap),
        "ssim": ssim(drawn, right, num_bootstrap=num_bootstrap),
        "mse": mse(drawn, right, num_bootstrap=num_bootstrap),
    }
    if change:
        base = found.base.numpy()
        for key, measure in (("psnr", psnr), ("mse", mse)):
            name = f"{results[key].name} of the source ({change})"
            results[f"source_{key}"] = measure(base, right, name=name, num_bootstrap=num_bootstrap)
    each = found.psnr()
    return Evaluation(
        results=results,
        by_tag=_by_tag([example.tags for example in examples], each),
        sources=[example.source for example in examples],
        outputs=[f"{value:.2f} dB" for value in each],
        references=[example.target for example in examples],
        num_tokens=len(examples),
        seconds=seconds,
    )


def _by_tag(tags: Sequence[Sequence[str]], each: NDArray[np.float64]) -> list[Group]:
    groups = []
    for tag in sorted({tag for own in tags for tag in own}):
        values = [value for value, own in zip(each.tolist(), tags, strict=True) if tag in own]
        result = Result("PSNR", sum(values) / len(values), "unit:dB|average:picture")
        groups.append(Group(tag, len(values), {"psnr": result}))
    return groups
