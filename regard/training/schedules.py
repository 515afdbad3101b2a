"""Learning-rate schedules: step → factor of the base learning rate."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from regard.core.config import Config, NonNegative, Positive, Within
from regard.core.errors import ConfigError
from regard.core.logging import logger


@dataclass(frozen=True, kw_only=True)
class _Warmup(Config):
    """Settings of schedules with a warm-up."""

    kind: str
    """Name of the schedule."""
    warmup_steps: NonNegative = 0
    """Steps of linear warm-up from zero to the base learning rate."""


@dataclass(frozen=True, kw_only=True)
class ConstantConfig(_Warmup):
    """Constant learning rate after a warm-up."""

    kind: Literal["constant"] = "constant"


@dataclass(frozen=True, kw_only=True)
class InverseTimeConfig(Config):
    """Base learning rate divided by the epoch number, counted from 1."""

    kind: Literal["inverse_time"] = "inverse_time"
    """Name of the schedule."""


@dataclass(frozen=True, kw_only=True)
class StepConfig(Config):
    """Step decay: the learning rate is multiplied by `gamma` every `every_steps` steps."""

    kind: Literal["step"] = "step"
    """Name of the schedule."""
    every_steps: Positive = 10_000
    """Steps between two reductions."""
    gamma: Annotated[float, Within(0, 1)] = 0.5
    """Factor of each reduction."""


@dataclass(frozen=True, kw_only=True)
class InverseSqrtConfig(_Warmup):
    """Linear warm-up, then decay with the inverse square root of the step.

    Vaswani et al. 2017, eq. 3. The base learning rate is the peak; the learning rate of the paper
    corresponds to a base of 1/√(dim · warmup_steps).
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup_steps: Positive = 4_000


@dataclass(frozen=True, kw_only=True)
class CosineConfig(_Warmup):
    """Linear warm-up, then cosine decay to the last step (Loshchilov and Hutter 2017)."""

    kind: Literal["cosine"] = "cosine"
    min_factor: Annotated[float, Within(0, 1)] = 0.0
    """Factor of the base learning rate at the last step."""


@dataclass(frozen=True, kw_only=True)
class PlateauConfig(_Warmup):
    """The learning rate is multiplied by `gamma` when validation stops improving."""

    kind: Literal["plateau"] = "plateau"
    patience: Positive = 2
    """Validations without improvement before a reduction."""
    gamma: Annotated[float, Within(0, 1)] = 0.5
    """Factor of each reduction."""


class Constant:
    """Constant after a warm-up (`ConstantConfig`), and the base class of other schedules."""

    def __init__(self, config: Any, total_steps: int) -> None:
        self.config = config
        self.total_steps = total_steps

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor of the base learning rate for one update.

        Args:
            step: Number of the update, counted from 1.
            epoch: Number of the epoch, counted from 0.
        """
        return _warmup(step, self.config.warmup_steps)

    def observe(self, value: float) -> None:
        """Record the result of a validation; larger is better."""

    def state(self) -> dict[str, Any]:
        """Return the state as plain JSON; empty for a schedule without one."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `state`."""


class InverseTime(Constant):
    """See `InverseTimeConfig`."""

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        return 1 / (epoch + 1)


class Step(Constant):
    """See `StepConfig`."""

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        return float(self.config.gamma ** ((step - 1) // self.config.every_steps))


class InverseSqrt(Constant):
    """See `InverseSqrtConfig`."""

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        warmup: int = self.config.warmup_steps
        return min(step / warmup, math.sqrt(warmup / step))


class Cosine(Constant):
    """See `CosineConfig`."""

    def __init__(self, config: CosineConfig, total_steps: int) -> None:
        super().__init__(config, total_steps)
        if not total_steps:
            raise ConfigError(
                "`schedule.kind` is 'cosine', which needs the number of the last step. "
                "Set `max_steps` or `max_epochs`."
            )
        self._warmup_steps = config.warmup_steps
        if config.warmup_steps >= total_steps:
            # Short training runs, often on small data, still need a warm-up and a decay.
            self._warmup_steps = total_steps // 10
            logger.info(
                f"`schedule.warmup_steps` ({config.warmup_steps:,}) would not end before the last "
                f"step ({total_steps:,}); warming up for {self._warmup_steps:,} instead."
            )

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        warmup, min_factor = self._warmup_steps, self.config.min_factor
        if step < warmup:
            return _warmup(step, warmup)
        progress = min(1.0, (step - warmup) / (self.total_steps - warmup))
        return float(min_factor + (1 - min_factor) * (1 + math.cos(math.pi * progress)) / 2)


class Plateau(Constant):
    """See `PlateauConfig`."""

    def __init__(self, config: PlateauConfig, total_steps: int) -> None:
        super().__init__(config, total_steps)
        self._state: dict[str, Any] = {"best": None, "bad_validations": 0, "num_drops": 0}

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        factor: float = self.config.gamma ** self._state["num_drops"]
        return super().factor(step, epoch) * factor

    def observe(self, value: float) -> None:
        """Count validations without improvement; reduce the learning rate after `patience`."""
        if is_better(value, self._state["best"]):
            self._state |= {"best": value, "bad_validations": 0}
            return
        self._state["bad_validations"] += 1
        if self._state["bad_validations"] == self.config.patience:
            self._state["num_drops"] += 1
            self._state["bad_validations"] = 0

    def state(self) -> dict[str, Any]:
        """Return the counts and the best value."""
        return dict(self._state)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the counts; the state of another schedule may lack them."""
        self._state |= state


ScheduleConfig = (
    ConstantConfig
    | InverseTimeConfig
    | StepConfig
    | InverseSqrtConfig
    | CosineConfig
    | PlateauConfig
)

SCHEDULES: dict[type, type[Constant]] = {
    ConstantConfig: Constant,
    InverseTimeConfig: InverseTime,
    StepConfig: Step,
    InverseSqrtConfig: InverseSqrt,
    CosineConfig: Cosine,
    PlateauConfig: Plateau,
}


def build_schedule(config: ScheduleConfig, total_steps: int) -> Constant:
    """Build the schedule that `config` describes.

    Args:
        config: Settings of a schedule.
        total_steps: Total number of steps, 0 if unknown.
    """
    return SCHEDULES[type(config)](config, total_steps)


def is_better(value: float, best: float | None) -> bool:
    """Return whether a value improves on the best so far; NaN never does."""
    return not math.isnan(value) and (best is None or value > best)


def _warmup(step: int, warmup_steps: int) -> float:
    return min(1.0, step / warmup_steps) if warmup_steps else 1.0
