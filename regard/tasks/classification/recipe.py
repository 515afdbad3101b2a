"""The recipe of classification."""

from dataclasses import dataclass, field
from typing import Literal

from regard.core.config import Config, NonNegativeFloat
from regard.core.errors import ConfigError
from regard.data.modality import SourceConfig, modality_of
from regard.data.text.tokenizers import TokenizerConfig
from regard.models.classifier import ClassifierConfig
from regard.tasks.recipe import BaseDataConfig, BaseRecipe, check_encoder_reads


@dataclass(frozen=True, kw_only=True)
class ClassificationDataConfig(BaseDataConfig):
    """How labelled sources become batches."""

    source: SourceConfig = field(default_factory=TokenizerConfig)
    """What the source is: text, with the settings of its tokeniser; an image; both; or sound. A
    run that begins from another takes that one's."""
    mixup: NonNegativeFloat = 0.0
    """How much images are mixed with each other while training, labels as well: both parameters of
    the beta distribution that the shares are drawn from (Zhang et al. 2018); 0 = not at all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mixup and modality_of(self.source).name != "image":
            raise ConfigError(
                f"`mixup` is for images, but is {self.mixup:g} where `source.kind` is "
                f"'{self.source.kind}'. Set it to 0."
            )


@dataclass(frozen=True, kw_only=True)
class ClassificationValidationConfig(Config):
    """What decides which weights of a classifier are best."""

    metric: Literal["accuracy", "loss"] = "accuracy"
    """The share of right labels, or the loss."""


@dataclass(frozen=True, kw_only=True)
class ClassificationRecipe(BaseRecipe):
    """An encoder that tells which label a text or an image has, or two texts together."""

    task: Literal["classification"] = "classification"
    """What the model is for."""
    data: ClassificationDataConfig = field(default_factory=ClassificationDataConfig)
    """How labelled sources become batches."""
    model: ClassifierConfig = field(default_factory=ClassifierConfig)
    """The model; a run that begins from another takes that one's encoder."""
    validation: ClassificationValidationConfig = field(
        default_factory=ClassificationValidationConfig
    )
    """How the best weights are told."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_encoder_reads(self.data.source, self.model.encoder)
