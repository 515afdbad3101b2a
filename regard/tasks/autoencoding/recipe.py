"""Recipe of text autoencoders."""

from dataclasses import dataclass, field
from typing import Literal

from regard.core.config import UnitInterval
from regard.core.errors import ConfigError
from regard.data.text.noise import WordNoiseConfig
from regard.models.build import ModelConfig
from regard.models.decoders.sutskever import SutskeverDecoderConfig
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.tasks.generation.recipe import DataConfig, Recipe


@dataclass(frozen=True, kw_only=True)
class AutoencodingDataConfig(DataConfig):
    """Data settings: every text is its own target."""

    is_joint: bool = True
    """Always true: both sides are the same text, with the tokeniser settings of the source."""
    noise: WordNoiseConfig = field(default_factory=WordNoiseConfig)
    """Noise on the sources in training; `predict` adds none."""
    word_dropout: UnitInterval = 0.0
    """Probability of replacing a decoder input by the unknown token in training, which makes the
    decoder depend on the latent (Bowman et al. 2016)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_joint:
            raise ConfigError("`is_joint` must be true if both sides are one text, but is false.")


@dataclass(frozen=True, kw_only=True)
class AutoencodingRecipe(Recipe):
    """An encoder–decoder that reconstructs a text from a latent vector."""

    task: Literal["autoencoding"] = "autoencoding"  # type: ignore[assignment]
    """The task."""
    data: AutoencodingDataConfig = field(default_factory=AutoencodingDataConfig)
    """Data and batching."""
    model: ModelConfig = field(
        default_factory=lambda: ModelConfig(
            encoder=BottleneckEncoderConfig(), decoder=SutskeverDecoderConfig()
        )
    )
    """The model."""
    metrics: tuple[str, ...] = ("accuracy", "bleu")
    """Metrics of a test set; the first one of predictions is also measured by source length."""

    def __post_init__(self) -> None:
        super().__post_init__()
        encoder = self.model.encoder
        if not isinstance(encoder, BottleneckEncoderConfig):
            raise ConfigError(
                "`model.encoder.kind` must be 'bottleneck' where a text is reconstructed from its "
                f"latent, but is '{encoder.kind}'. Put it inside: `model.encoder.encoder.kind`."
            )
        if encoder.of != "summary":
            raise ConfigError(
                "`model.encoder.of` must be 'summary', so that all texts have latents of one size, "
                f"but is '{encoder.of}'."
            )
