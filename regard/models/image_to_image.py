"""Image-to-image models and image autoencoders: an encoder and an image generator."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from regard.core.config import Config
from regard.core.errors import ConfigError
from regard.core.module import Module
from regard.core.specs import ImageSpec, VideoSpec
from regard.models.encoders import build_encoder
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.image import ImageEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.video import VideoEncoderConfig
from regard.models.generators import GENERATORS, ConvolutionGeneratorConfig, GeneratorConfig
from regard.models.init import InitConfig, initialize
from regard.models.interfaces import Memory


@dataclass(frozen=True, kw_only=True)
class ImageToImageConfig(Config):
    """Hyperparameters of an image-to-image model."""

    encoder: ImageEncoderConfig | VideoEncoderConfig | BottleneckEncoderConfig = field(
        default_factory=ResnetEncoderConfig
    )
    """Encoder of the source; with a bottleneck, the model is an autoencoder."""
    generator: GeneratorConfig = field(default_factory=ConvolutionGeneratorConfig)
    """Generator of the target."""
    is_residual: bool = False
    """Whether the source, resized to the target, is added to the generated image."""
    deviation: float = 1.0
    """Standard deviation of target pixels (from 0 to 1) given the generated image. A smaller value
    increases the weight of the reconstruction loss."""
    init: InitConfig = field(default_factory=InitConfig)
    """Weight initialisation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deviation <= 0:
            raise ConfigError(f"`deviation` must be above 0, but is {self.deviation:g}.")


class ImageOutput(NamedTuple):
    """Generated images of a batch and further loss terms."""

    images: Tensor
    """(B, C, Y, X), black is 0 and white is 1; not clamped."""
    losses: dict[str, Tensor]
    """Loss terms of the memory by name, (B,) each, already weighted."""


class ImageToImage(Module):
    """Model that generates an image from an image or a video.

    Args:
        config: The hyperparameters.
        source: Input specification of the source.
        target: Specification of the target.
    """

    def __init__(
        self, config: ImageToImageConfig, source: ImageSpec | VideoSpec, target: ImageSpec
    ) -> None:
        super().__init__()
        self.is_residual = config.is_residual
        self.encoder = build_encoder(config.encoder, source)
        self.layout, self.num_cells = self._memory_size(source)
        self.generator = GENERATORS[type(config.generator)](
            config.generator,
            memory_dim=self.encoder.memory_dim,
            layout=self.layout,
            shape=target.shape,
        )
        initialize(self, config.init)

    def forward(self, values: Tensor, mask: Tensor, base: Tensor) -> ImageOutput:
        """Generate one image per source.

        Args:
            values: (B, C, Y, X) images, or (B, F, C, Y, X) videos.
            mask: (B, 1); there is no padding.
            base: (B, C, Y, X), the source resized to the target, from 0 to 1.
        """
        memory = self.encoder(values, mask)
        return ImageOutput(self.generate(memory, base), memory.losses)

    def generate(self, memory: Memory, base: Tensor | None = None) -> Tensor:
        """Generate images (B, C, Y, X) in float32.

        Args:
            memory: The encoded source.
            base: (B, C, Y, X), added to the output; needed if the model `is_residual`.
        """
        images = self.generator(memory).float()
        if not self.is_residual:
            return images
        assert base is not None
        return base + images

    def _memory_size(self, source: ImageSpec | VideoSpec) -> tuple[tuple[int, ...] | None, int]:
        """Return layout and number of positions of a memory."""
        was_training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            memory = self.encoder(torch.zeros(1, *source.shape), torch.ones(1, 1, dtype=torch.bool))
        self.encoder.train(was_training)
        return memory.layout, memory.states.shape[1]
