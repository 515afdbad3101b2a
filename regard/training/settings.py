"""The settings of a training run."""

from dataclasses import dataclass, field
from typing import Annotated

from regard.core.config import AtLeast, Config, NonNegative, Positive, Within
from regard.core.device import Precision
from regard.core.errors import ConfigError
from regard.training.optimizers import AdamConfig, OptimizerConfig
from regard.training.schedules import ConstantConfig, ScheduleConfig


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Config):
    """How a model is trained, whatever the model is."""

    max_steps: NonNegative = 0
    """Updates after which training ends; 0 = no limit."""
    max_epochs: NonNegative = 20
    """Passes over the data after which training ends; 0 = no limit."""
    max_minutes: Annotated[float, AtLeast(0)] = 0.0
    """Minutes after which training ends, time before a resume included; 0 = no limit."""
    optimizer: OptimizerConfig = field(default_factory=AdamConfig)
    """How gradients become steps."""
    schedule: ScheduleConfig = field(default_factory=ConstantConfig)
    """How the learning rate changes over time."""
    layer_decay: float = 1.0
    """Learning rate of a block as a share of the rate of the block above it; 1 = one rate."""
    freeze: tuple[str, ...] = ()
    """Beginnings of names of weights that stay as they are, such as 'encoder.embedding'."""
    clip_norm: Annotated[float, AtLeast(0)] = 1.0
    """Largest norm of the gradient of an update; 0 = not clipped."""
    label_smoothing: Annotated[float, Within(0, 1)] = 0.0
    """Share of the target probability given to the whole vocabulary."""
    teacher_forcing: Annotated[float, Within(0, 1)] = 1.0
    """Probability that the decoder sees the true previous token, not its own."""
    accumulate: Positive = 1
    """Batches that make up one update."""
    validate_every: NonNegative = 0
    """Updates between two validations; 0 = after each epoch."""
    patience: NonNegative = 5
    """Validations without improvement before training ends; 0 = never."""
    average_last: NonNegative = 0
    """Average the weights of so many last validations at the end, if that is better; 0 = off."""
    log_every: Positive = 50
    """Updates between two lines of the journal."""
    precision: Precision = "auto"
    """Type of the matrix products; 'auto' takes bf16 where the hardware has it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.layer_decay <= 1:
            raise ConfigError(
                f"`layer_decay` must be above 0 and at most 1, but is {self.layer_decay}."
            )
        if not (self.max_steps or self.max_epochs or self.max_minutes or self.patience):
            raise ConfigError(
                "`max_steps`, `max_epochs`, `max_minutes` and `patience` are all 0, "
                "so training would never end. Set one of them."
            )
