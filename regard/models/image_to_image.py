"""Image to image: an encoder of images or videos reads, a generator draws; autoencoders, too."""

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
from regard.models.init import InitConfig, initialise
from regard.models.interfaces import Memory


@dataclass(frozen=True, kw_only=True)
class ImageToImageConfig(Config):
    """An encoder of images or videos and a generator of images."""

    encoder: ImageEncoderConfig | VideoEncoderConfig | BottleneckEncoderConfig = field(
        default_factory=ResnetEncoderConfig
    )
    """What reads the source; with a bottleneck around it, the model is an autoencoder."""
    generator: GeneratorConfig = field(default_factory=ConvolutionGeneratorConfig)
    """What draws the target."""
    is_residual: bool = False
    """Whether the source, brought to the form of the target, is added to what is drawn."""
    deviation: float = 1.0
    """Standard deviation of the target's values around what is drawn, where black is 0 and white is
    1; the smaller, the more errors weigh beside other terms of the loss."""
    init: InitConfig = field(default_factory=InitConfig)
    """How the weights start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deviation <= 0:
            raise ConfigError(f"`deviation` must be above 0, but is {self.deviation:g}.")


class Drawn(NamedTuple):
    """What was drawn for a batch."""

    images: Tensor
    """(B, C, Y, X), where black is 0 and white is 1; values may lie beyond."""
    losses: dict[str, Tensor]
    """What the memory costs, by name: one number a source, (B,), already weighted."""


class ImageToImage(Module):
    """Draws an image for an image or a video.

    Args:
        config: The settings.
        source: The sizes of the source.
        target: The sizes of the target.
    """

    def __init__(
        self, config: ImageToImageConfig, source: ImageSpec | VideoSpec, target: ImageSpec
    ) -> None:
        super().__init__()
        self.is_residual = config.is_residual
        self.encoder = build_encoder(config.encoder, source)
        self.layout, self.num_cells = self._measure(source)
        self.generator = GENERATORS[type(config.generator)](
            config.generator,
            memory_dim=self.encoder.memory_dim,
            layout=self.layout,
            shape=target.shape,
        )
        initialise(self, config.init)

    def forward(self, values: Tensor, mask: Tensor, base: Tensor) -> Drawn:
        """Draw a target for each source.

        Args:
            values: (B, C, Y, X) images, or (B, F, C, Y, X) videos.
            mask: (B, 1); neither has padding.
            base: (B, C, Y, X), the source in the form of the target, from 0 to 1.
        """
        memory = self.encoder(values, mask)
        return Drawn(self.generate(memory, base), memory.losses)

    def generate(self, memory: Memory, base: Tensor | None = None) -> Tensor:
        """Draw from what was read, (B, C, Y, X); in 32 bits, where small differences count.

        Args:
            memory: What was read.
            base: (B, C, Y, X), what is added; only where the model `is_residual`.
        """
        drawn = self.generator(memory).float()
        if not self.is_residual:
            return drawn
        assert base is not None
        return base + drawn

    def _measure(self, source: ImageSpec | VideoSpec) -> tuple[tuple[int, ...] | None, int]:
        """Return the layout of every memory, and its number of positions."""
        was_training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            memory = self.encoder(torch.zeros(1, *source.shape), torch.ones(1, 1, dtype=torch.bool))
        self.encoder.train(was_training)
        return memory.layout, memory.states.shape[1]
