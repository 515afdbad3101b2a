"""The recipe of autoencoders of texts."""

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
    """How texts become pairs of themselves, the source corrupted or not."""

    is_joint: bool = True
    """Always: both sides are the same text. The source's tokeniser is the one that is trained."""
    noise: WordNoiseConfig = field(default_factory=WordNoiseConfig)
    """What spoils a source while training; nothing, where answers are asked for."""
    word_dropout: UnitInterval = 0.0
    """Probability that the decoder reads an unknown token in place of a right one while training,
    so that it has to ask the code (Bowman et al. 2016)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_joint:
            raise ConfigError("`is_joint` must be true where both sides are one text.")


@dataclass(frozen=True, kw_only=True)
class AutoencodingRecipe(Recipe):
    """An encoder–decoder that writes a text anew from a narrow code."""

    task: Literal["autoencoding"] = "autoencoding"  # type: ignore[assignment]
    """What the model is for."""
    data: AutoencodingDataConfig = field(default_factory=AutoencodingDataConfig)
    """How texts become batches."""
    model: ModelConfig = field(
        default_factory=lambda: ModelConfig(
            encoder=BottleneckEncoderConfig(), decoder=SutskeverDecoderConfig()
        )
    )
    """The model."""
    metrics: tuple[str, ...] = ("accuracy", "bleu")
    """What is measured on a test set; the first of answers is also measured by length."""

    def __post_init__(self) -> None:
        super().__post_init__()
        encoder = self.model.encoder
        if not isinstance(encoder, BottleneckEncoderConfig):
            raise ConfigError(
                "`model.encoder.kind` must be 'bottleneck' where a text is written anew from its "
                f"code, but is '{encoder.kind}'. Put it inside: `model.encoder.encoder.kind`."
            )
        if encoder.of != "summary":
            raise ConfigError(
                "`model.encoder.of` must be 'summary', so that all texts have codes of one width, "
                f"but is '{encoder.of}'."
            )
