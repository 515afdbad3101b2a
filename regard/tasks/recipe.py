"""Settings that the recipes of all tasks share."""

from dataclasses import dataclass, field

from regard.core.config import Config
from regard.data.batching import BatchConfig
from regard.data.modality import SourceConfig, modality_of
from regard.data.text.readers import OnError
from regard.models.encoders import EncoderConfig, check_source
from regard.training.settings import TrainConfig


@dataclass(frozen=True, kw_only=True)
class BaseDataConfig(Config):
    """Data settings of every recipe."""

    seed: int = 0
    """Seed of splits and generated data; independent of the model's, so that runs with several
    seeds share their data."""
    on_error: OnError = "stop"
    """Treatment of lines of a file that hold no pair, such as one without a tab: 'stop' with
    their number and the first one, or 'skip' them; likewise of recordings, images and videos, if
    the format of more than 20 % of them needs a package that is missing, or conversion."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """Batching."""


@dataclass(frozen=True, kw_only=True)
class BaseRecipe(Config):
    """Settings of every recipe."""

    task: str = ""
    """The task."""
    seed: int = 1
    """Seed of weight initialisation, data order and dropout."""
    init_from: str = ""
    """Run folder whose vocabularies and weights to fine-tune; empty = train from scratch."""
    data: BaseDataConfig = field(default_factory=BaseDataConfig)
    """Data and batching."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """Training."""


def check_encoder_reads(source: SourceConfig, encoder: EncoderConfig) -> None:
    """Raise a `ConfigError` if an encoder cannot read the modality of the source."""
    check_source(encoder, modality_of(source).input_spec)
