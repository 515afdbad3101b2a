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
from regard.training.losses import log_constant

MAX_FRAMES = 3
"""Frames of a video that are shown, the last ones."""


@dataclass(frozen=True)
class GeneratedImages:
    """Generated images with their sources and targets; on the host."""

    values: Tensor
    """(B, C, Y, X), generated; black is 0 and white is 1, but values may lie beyond."""
    targets: Tensor
    """(B, C, Y, X), in 8 bits."""
    sources: Tensor
    """(B, C, Y, X), or (B, F, C, Y, X), with noise, in 8 bits."""
    base: Tensor
    """(B, C, Y, X), the sources in the form of the target, in 8 bits."""
    losses: Tensor
    """(B,), further terms of the loss of each source."""

    @property
    def pixels(self) -> Tensor:
        """(B, C, Y, X), generated, in 8 bits."""
        return to_bytes(self.values)

    def psnr(self) -> NDArray[np.float64]:
        """Return the peak signal-to-noise ratio of each image in dB."""
        return image_psnr(self.pixels.numpy(), self.targets.numpy())


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
    return -errors / (2 * deviation**2) - gaussian_nll_constant(deviation) * right[0].numel()


def image_tiles(found: GeneratedImages) -> list[CaptionedImage]:
    """Return the first source, the image generated for it, and the target."""
    source = found.sources[0] if found.sources.dim() == 5 else found.sources[:1]  # (F, C, Y, X)
    names = [f"frame {number}" for number in range(1, len(source) + 1)]
    if len(source) == 1:
        names = ["source"]
    tiles = [CaptionedImage(to_image(one), name) for one, name in zip(source, names, strict=True)]
    generated = CaptionedImage(to_image(found.pixels[0]), "drawn", f"{found.psnr()[0]:.1f} dB")
    return [*tiles[-MAX_FRAMES:], generated, CaptionedImage(to_image(found.targets[0]), "right")]


def evaluate_images(
    found: GeneratedImages,
    examples: Sequence[Example],
    *,
    change: str,
    seconds: float,
    num_bootstrap: int = 0,
) -> Evaluation:
    """Measure the images generated for a test set.

    Args:
        found: The images.
        examples: The test set.
        change: How sources differ from targets; if they do not, they are no baseline.
        seconds: Time that generating took.
        num_bootstrap: Bootstrap samples of each confidence interval; 0 = no intervals.
    """
    generated, right = found.pixels.numpy(), found.targets.numpy()
    results = {
        "psnr": psnr(generated, right, num_bootstrap=num_bootstrap),
        "ssim": ssim(generated, right, num_bootstrap=num_bootstrap),
        "mse": mse(generated, right, num_bootstrap=num_bootstrap),
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
        result = Result("PSNR", sum(values) / len(values), "unit:dB|average:image")
        groups.append(Group(tag, len(values), {"psnr": result}))
    return groups
