"""Images as few bytes: whole-number codes through a range coder that knows what to expect."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from regard.core.errors import ConfigError, DataError
from regard.metrics.result import Result
from regard.metrics.vision.images import psnr
from regard.models.bottlenecks import RoundedBottleneck
from regard.models.encoders.bottleneck import BottleneckEncoder
from regard.studies.autoencoder import Subject
from regard.studies.compression.range_coder import HEAD_BYTES, Frequencies, read_codes, write_codes

PRIOR = "code-counts.json"
"""The file in a run folder that says how often each number stands at each place of a code."""

Codes = NDArray[np.int64]
"""(B, D), counted from 0 on."""


@dataclass(frozen=True)
class Compressed:
    """What was compressed, how small it is, and how much of it is left."""

    num_images: int
    num_bytes: int
    """Size of the file, its head included."""
    bits_per_pixel: float
    """A pixel is one place of an image, whatever its channels."""
    quality: Result
    """PSNR of what comes back."""

    def __str__(self) -> str:
        return (
            f"{self.num_images:,} images in {self.num_bytes:,} bytes ({HEAD_BYTES} of them the "
            f"head): {self.bits_per_pixel:.4f} bits a pixel, PSNR {self.quality.value:.2f} dB"
        )


class Compressor:
    """A run whose codes are whole numbers, and how often it wrote each while training."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        encoder = subject.task.model.encoder
        bottleneck = getattr(encoder, "bottleneck", None)
        if not isinstance(encoder, BottleneckEncoder) or not isinstance(
            bottleneck, RoundedBottleneck
        ):
            raise ConfigError(
                "Only codes of whole numbers can be compressed, but those of "
                f"{subject.folder} are not. Train with `model.encoder.bottleneck.kind=rounded`."
            )
        if subject.reads_text:
            raise ConfigError(f"Images are compressed, but {subject.folder} reads text.")
        self._lowest = bottleneck.lowest
        self._num_levels = bottleneck.highest - bottleneck.lowest + 1

    @cached_property
    def counts(self) -> list[list[int]]:
        """How often each number stood at each place of the training codes."""
        counts: list[list[int]] = self.subject.remembered(PRIOR, self._count)
        return counts

    def _count(self) -> list[list[int]]:
        codes = self.to_codes(self.subject.task.encode(self.subject.fitted_to))
        return [np.bincount(column, minlength=self._num_levels).tolist() for column in codes.T]

    @cached_property
    def tables(self) -> list[Frequencies]:
        """What is expected at each place of a code."""
        return [Frequencies(counts) for counts in self.counts]

    @cached_property
    def maker(self) -> bytes:
        """What tells this model and its expectations from others."""
        known = f"{self.subject.fingerprint} {self.counts}"
        return hashlib.sha256(known.encode()).digest()[:8]

    def to_codes(self, values: Tensor) -> Codes:
        """Return whole numbers from 0 on for the codes (B, D) of a model."""
        return (values.round().long() - self._lowest).numpy()

    def to_values(self, codes: Codes) -> Tensor:
        """Return the codes (B, D) of a model for whole numbers from 0 on."""
        return torch.from_numpy(codes + self._lowest).float()

    def compress(self, sources: list[str], path: Path) -> Compressed:
        """Write the codes of images to a file, and measure what comes back from them."""
        codes = self.to_codes(self.subject.task.encode(sources))
        num_bytes = write_codes(path, codes, self.tables, maker=self.maker)
        images = self.subject.task.decode(self.to_values(codes))
        right = self.subject.pixels(sources)
        num_pixels = len(sources) * right.shape[2] * right.shape[3]
        return Compressed(
            num_images=len(sources),
            num_bytes=num_bytes,
            bits_per_pixel=8 * num_bytes / num_pixels,
            quality=psnr(images.numpy(), right.numpy(), num_bootstrap=1000),
        )

    def restore(self, path: Path) -> Tensor:
        """Return the images (B, C, Y, X), in 8 bits, that a file stands for."""
        codes = read_codes(path, self.tables, maker=self.maker)
        if not len(codes):
            raise DataError(f"{path} holds no image.")
        images: Tensor = self.subject.task.decode(self.to_values(codes))
        return images


def save_images(images: Tensor, folder: Path) -> None:
    """Write images (B, C, Y, X), in 8 bits, as numbered PNG files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images.movedim(1, -1).numpy()):
        drawn = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
        drawn.save(folder / f"{number:05}.png")
