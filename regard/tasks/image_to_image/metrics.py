"""Evaluation of generated images, with the source as a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regard.data.example import Example
from regard.metrics.result import Group, Result
from regard.metrics.vision.images import image_psnr, mse, psnr, ssim
from regard.tasks.evaluation import Evaluation
from regard.tasks.prediction import CaptionedImage, to_image
from regard.training.losses import gaussian_nll_constant

MAX_FRAMES = 3
"""Maximum number of frames of a source video in a plot, the last ones."""


@dataclass(frozen=True)
class GeneratedImages:
    """Generated images with their sources and targets; on the host."""

    values: Tensor
    """(B, C, Y, X), generated; black is 0 and white is 1, not clipped."""
    targets: Tensor
    """(B, C, Y, X), 8-bit."""
    sources: Tensor
    """(B, C, Y, X), or (B, F, C, Y, X), with noise, 8-bit."""
    baseline: Tensor
    """(B, C, Y, X), the sources in the shape of the target, 8-bit."""
    losses: Tensor
    """(B,), auxiliary losses of each source."""

    @property
    def pixels(self) -> Tensor:
        """(B, C, Y, X), generated, 8-bit."""
        return to_bytes(self.values)

    def psnr(self) -> NDArray[np.float64]:
        """Return the peak signal-to-noise ratio of each image in dB."""
        return image_psnr(self.pixels.numpy(), self.targets.numpy())


def to_bytes(values: Tensor) -> Tensor:
    """Convert values from 0 to 1 to 8 bits; clip values outside."""
    return (values.clamp(0, 1) * 255).round().byte()


def log_densities(means: Tensor, targets: Tensor, *, std: float) -> Tensor:
    """Return the log-density of each target under a normal distribution: (B,).

    Args:
        means: (B, C, Y, X), generated values from 0 to 1.
        targets: (B, C, Y, X), 8-bit.
        std: Standard deviation of each value.
    """
    errors = (means - targets / 255).square().flatten(1).sum(1)  # (B,)
    return -errors / (2 * std**2) - gaussian_nll_constant(std) * targets[0].numel()


def image_tiles(images: GeneratedImages) -> list[CaptionedImage]:
    """Return the first source, the image generated for it, and the target."""
    sources = images.sources
    source = sources[0] if sources.dim() == 5 else sources[:1]  # (F, C, Y, X)
    names = [f"frame {number}" for number in range(1, len(source) + 1)]
    if len(source) == 1:
        names = ["source"]
    tiles = [CaptionedImage(to_image(one), name) for one, name in zip(source, names, strict=True)]
    note = f"{images.psnr()[0]:.1f} dB"
    generated = CaptionedImage(to_image(images.pixels[0]), "generated", note)
    return [*tiles[-MAX_FRAMES:], generated, CaptionedImage(to_image(images.targets[0]), "target")]


def evaluate_images(
    images: GeneratedImages,
    examples: Sequence[Example],
    *,
    change: str,
    seconds: float,
    num_bootstrap: int = 0,
) -> Evaluation:
    """Evaluate the images generated for a test set.

    Args:
        images: The images.
        examples: The test set.
        change: Difference between sources and targets; empty if there is none, and then sources
            are no baseline.
        seconds: Duration of the generation.
        num_bootstrap: Bootstrap samples of each confidence interval; 0 = no intervals.
    """
    generated, targets = images.pixels.numpy(), images.targets.numpy()
    results = {
        "psnr": psnr(generated, targets, num_bootstrap=num_bootstrap),
        "ssim": ssim(generated, targets, num_bootstrap=num_bootstrap),
        "mse": mse(generated, targets, num_bootstrap=num_bootstrap),
    }
    if change:
        base = images.baseline.numpy()
        for key, metric in (("psnr", psnr), ("mse", mse)):
            name = f"{results[key].name} of the source ({change})"
            result = metric(base, targets, name=name, num_bootstrap=num_bootstrap)
            results[f"source_{key}"] = result
    per_image = images.psnr()
    return Evaluation(
        results=results,
        by_tag=_by_tag([example.tags for example in examples], per_image.tolist()),
        sources=[example.source for example in examples],
        outputs=[f"{value:.2f} dB" for value in per_image],
        references=[example.target for example in examples],
        num_tokens=len(examples),
        seconds=seconds,
    )


def _by_tag(tags: Sequence[Sequence[str]], per_image: Sequence[float]) -> list[Group]:
    groups = []
    for tag in sorted({tag for names in tags for tag in names}):
        values = [value for value, names in zip(per_image, tags, strict=True) if tag in names]
        result = Result("PSNR", sum(values) / len(values), "unit:dB|average:image")
        groups.append(Group(tag, len(values), {"psnr": result}))
    return groups
