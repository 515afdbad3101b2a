"""Image compression: integer codes of an autoencoder, entropy-coded by a range coder."""

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
from regard.studies.autoencoder import AutoencoderRun
from regard.studies.compression.range_coder import (
    HEADER_BYTES,
    Frequencies,
    read_codes,
    write_codes,
)

PRIOR = "code-counts.json"
"""File in a run folder with the frequency of each value at each position of the code."""

Codes = NDArray[np.int64]
"""(B, D), integers from 0."""


@dataclass(frozen=True)
class CompressionResult:
    """Size and quality of compressed images."""

    num_images: int
    num_bytes: int
    """Size of the file, including its header."""
    bits_per_pixel: float
    """Bits per pixel; all channels of a position are one pixel."""
    quality: Result
    """PSNR of the reconstruction."""

    def __str__(self) -> str:
        return (
            f"{self.num_images:,} images in {self.num_bytes:,} bytes ({HEADER_BYTES} of them the "
            f"header): {self.bits_per_pixel:.4f} bits per pixel, PSNR {self.quality.value:.2f} dB"
        )


class Compressor:
    """Compressor with an autoencoder of integer codes and their frequencies in training data."""

    def __init__(self, autoencoder: AutoencoderRun) -> None:
        self.autoencoder = autoencoder
        encoder = autoencoder.task.model.encoder
        bottleneck = getattr(encoder, "bottleneck", None)
        if not isinstance(encoder, BottleneckEncoder) or not isinstance(
            bottleneck, RoundedBottleneck
        ):
            raise ConfigError(
                "Only integer codes can be compressed, but those of "
                f"{autoencoder.folder} are not. Train with `model.encoder.bottleneck.kind=rounded`."
            )
        if autoencoder.is_text:
            raise ConfigError(
                f"Only images can be compressed, but {autoencoder.folder} is for text."
            )
        self._lowest = bottleneck.lowest
        self._num_levels = bottleneck.highest - bottleneck.lowest + 1

    @cached_property
    def counts(self) -> list[list[int]]:
        """Frequency of each value at each position of the training codes."""
        counts: list[list[int]] = self.autoencoder.cached(PRIOR, self._count)
        return counts

    def _count(self) -> list[list[int]]:
        codes = self.to_codes(self.autoencoder.task.encode(self.autoencoder.fit_sources))
        return [np.bincount(column, minlength=self._num_levels).tolist() for column in codes.T]

    @cached_property
    def tables(self) -> list[Frequencies]:
        """Frequency table of each position of a code."""
        return [Frequencies(counts) for counts in self.counts]

    @cached_property
    def model_id(self) -> bytes:
        """Hash of the weights and the frequency tables."""
        content = f"{self.autoencoder.fingerprint} {self.counts}"
        return hashlib.sha256(content.encode()).digest()[:8]

    def to_codes(self, values: Tensor) -> Codes:
        """Round latents (B, D) and shift them to integers from 0."""
        return (values.round().long() - self._lowest).numpy()

    def to_values(self, codes: Codes) -> Tensor:
        """Return the latents (B, D) of integer codes."""
        return torch.from_numpy(codes + self._lowest).float()

    def compress(self, sources: list[str], path: Path) -> CompressionResult:
        """Write the codes of images to a file, and measure the PSNR of the reconstruction."""
        codes = self.to_codes(self.autoencoder.task.encode(sources))
        num_bytes = write_codes(path, codes, self.tables, model_id=self.model_id)
        images = self.autoencoder.task.decode(self.to_values(codes))
        right = self.autoencoder.pixels(sources)
        num_pixels = len(sources) * right.shape[2] * right.shape[3]
        return CompressionResult(
            num_images=len(sources),
            num_bytes=num_bytes,
            bits_per_pixel=8 * num_bytes / num_pixels,
            quality=psnr(images.numpy(), right.numpy(), num_bootstrap=1000),
        )

    def restore(self, path: Path) -> Tensor:
        """Decode the images of a file, (B, C, Y, X), in 8 bits."""
        codes = read_codes(path, self.tables, model_id=self.model_id)
        if not len(codes):
            raise DataError(f"{path} holds no image.")
        images: Tensor = self.autoencoder.task.decode(self.to_values(codes))
        return images


def save_images(images: Tensor, folder: Path) -> None:
    """Write images (B, C, Y, X), in 8 bits, as numbered PNG files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images.movedim(1, -1).numpy()):
        pixels = image[..., 0] if image.shape[-1] == 1 else image
        Image.fromarray(pixels).save(folder / f"{number:05}.png")
