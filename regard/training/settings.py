"""Settings of a training run."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from regard.core.config import AtLeast, Config, NonNegative, Positive, Within
from regard.core.device import Precision
from regard.core.errors import ConfigError
from regard.training.optimizers import AdamConfig, OptimizerConfig
from regard.training.schedules import ConstantConfig, ScheduleConfig


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Config):
    """Training settings of any model."""

    max_steps: NonNegative = 0
    """Maximum number of updates; 0 = no limit."""
    max_epochs: NonNegative = 20
    """Maximum number of passes over the data; 0 = no limit."""
    max_minutes: Annotated[float, AtLeast(0)] = 0.0
    """Maximum training time in minutes, including time before a resume; 0 = no limit."""
    optimizer: OptimizerConfig = field(default_factory=AdamConfig)
    """Optimiser and its hyperparameters."""
    schedule: ScheduleConfig = field(default_factory=ConstantConfig)
    """Learning-rate schedule."""
    layer_decay: float = 1.0
    """Factor between the learning rates of a block and of the block above it; 1 = equal."""
    freeze: tuple[str, ...] = ()
    """Name prefixes of parameters that are not trained, such as 'encoder.embedding'."""
    clip_norm: Annotated[float, AtLeast(0)] = 1.0
    """Maximum gradient norm; 0 = no clipping."""
    label_smoothing: Annotated[float, Within(0, 1)] = 0.0
    """Probability mass of the target spread over the vocabulary."""
    teacher_forcing: Annotated[float, Within(0, 1)] = 1.0
    """Probability that the previous token given to the decoder is the true one, not its own."""
    accumulate: Positive = 1
    """Batches per update (gradient accumulation)."""
    validate_every: NonNegative = 0
    """Updates between two validations; 0 = after each epoch."""
    patience: NonNegative = 5
    """Validations without improvement before early stopping; 0 = never."""
    save_every_minutes: Annotated[float, AtLeast(0)] = 5.0
    """Minutes between two checkpoints, which are written in the background; a killed run loses the
    steps since the last one. 0 = only at validations and at the end."""
    save_every_steps: NonNegative = 0
    """Updates between two checkpoints; 0 = by time only."""
    average_last: NonNegative = 0
    """Number of last validations whose weights are averaged, if that is better; 0 = off."""
    ema_decay: Annotated[float, Within(0.0, 0.99999)] = 0.0
    """Decay of an exponential moving average of the weights, such as 0.999, which is validated and
    saved instead of them; 0 = off. `average_last` averages the weights themselves."""
    checkpoint_activations: bool = False
    """Whether to recompute the activations of blocks in the backward pass: less memory, more
    time."""
    log_every: Positive = 50
    """Updates between two rows of the training log."""
    precision: Precision = "auto"
    """Data type of matrix products; 'auto' uses bf16 if the hardware supports it."""
    compile: Literal["auto", "always", "never"] = "auto"
    """Whether to compile the blocks of the model; 'auto' does so on a GPU in long runs."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """Division among several processes: none, each has the whole model ('ddp'), or of each block
    with its gradients and the state of the optimiser ('fsdp')."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.layer_decay <= 1:
            raise ConfigError(
                f"`layer_decay` must be above 0 and at most 1, but is {self.layer_decay}."
            )
        if self.checkpoint_activations and self.compile == "always":
            raise ConfigError(
                "`compile` must be 'auto' or 'never' with `checkpoint_activations`, whose blocks "
                "are not compiled, but is 'always'."
            )
        if self.parallel == "fsdp":
            self._check_sharded()
        if not (self.max_steps or self.max_epochs or self.max_minutes or self.patience):
            raise ConfigError(
                "`max_steps`, `max_epochs`, `max_minutes` and `patience` are all 0, "
                "so training would never end. Set one of them."
            )

    def _check_sharded(self) -> None:
        """Raise if a setting needs whole matrices or blocks in every process."""
        refused = {
            "optimizer.kind": (self.optimizer.kind, self.optimizer.kind == "muon"),
            "ema_decay": (self.ema_decay, self.ema_decay > 0),
            "compile": (self.compile, self.compile == "always"),
        }
        for name, (value, is_refused) in refused.items():
            if is_refused:
                raise ConfigError(
                    f"`parallel` must be 'ddp' if `{name}` is {value!r}, but is 'fsdp', which "
                    "divides matrices among processes."
                )
