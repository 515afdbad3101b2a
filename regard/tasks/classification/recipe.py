"""Recipe of classifiers."""

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
    """Data settings of labelled sources."""

    source: SourceConfig = field(default_factory=TokenizerConfig)
    """The source: text, with the settings of its tokeniser; an image; both; audio; or video. With
    `init_from`, text has the vocabulary of the other run."""
    mixup: NonNegativeFloat = 0.0
    """Both parameters of the beta distribution of mixup weights for images and labels (Zhang et al.
    2018); 0 = no mixup."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mixup and modality_of(self.source).name != "image":
            raise ConfigError(
                f"`mixup` is for images, but is {self.mixup:g} where `source.kind` is "
                f"'{self.source.kind}'. Set it to 0."
            )


@dataclass(frozen=True, kw_only=True)
class ClassificationValidationConfig(Config):
    """Validation: the criterion for the best weights."""

    metric: Literal["accuracy", "loss"] = "accuracy"
    """Accuracy, or the loss."""


@dataclass(frozen=True, kw_only=True)
class ClassificationRecipe(BaseRecipe):
    """An encoder that predicts the label of a source, such as a text, a text pair or an image."""

    task: Literal["classification"] = "classification"
    """The task."""
    data: ClassificationDataConfig = field(default_factory=ClassificationDataConfig)
    """Data and batching."""
    model: ClassifierConfig = field(default_factory=ClassifierConfig)
    """The model; with `init_from`, its encoder is that of the other run."""
    validation: ClassificationValidationConfig = field(
        default_factory=ClassificationValidationConfig
    )
    """Validation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_encoder_reads(self.data.source, self.model.encoder)
