"""The settings that the recipes of all tasks share."""

from dataclasses import dataclass, field

from regard.core.config import Config
from regard.data.batching import BatchConfig
from regard.data.modality import SourceConfig, modality_of
from regard.models.encoders import EncoderConfig, check_source
from regard.training.settings import TrainConfig


@dataclass(frozen=True, kw_only=True)
class BaseDataConfig(Config):
    """What every recipe says about data."""

    seed: int = 0
    """Seed of splits and generated data, apart from the model's, so that runs stay comparable."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """How batches are cut."""


@dataclass(frozen=True, kw_only=True)
class BaseRecipe(Config):
    """What every recipe says, whatever the task."""

    task: str = ""
    """What the model is for."""
    seed: int = 1
    """Seed of the weights, the order of the data and dropout."""
    init_from: str = ""
    """A run folder whose vocabularies and weights to begin with; empty = from nothing."""
    data: BaseDataConfig = field(default_factory=BaseDataConfig)
    """How text becomes batches."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """How it is trained."""


def check_encoder_reads(source: SourceConfig, encoder: EncoderConfig) -> None:
    """Raise if an encoder is to read what it cannot: text, an image, both at once, or sound."""
    check_source(encoder, modality_of(source).input_spec)
