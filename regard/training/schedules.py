"""How the learning rate changes: step → factor of the base rate."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from regard.core.config import at_least, within
from regard.core.errors import ConfigError
from regard.core.logging import logger


@dataclass(frozen=True, kw_only=True)
class ConstantConfig:
    """The base rate throughout, after a warm-up."""

    kind: Literal["constant"] = "constant"
    """Which schedule."""
    warmup_steps: int = 0
    """Steps over which the rate first grows from zero to its base."""

    def __post_init__(self) -> None:
        at_least("warmup_steps", self.warmup_steps, 0)


@dataclass(frozen=True, kw_only=True)
class InverseTimeConfig:
    """The base rate divided by the number of the epoch: all, a half, a third and so on."""

    kind: Literal["inverse_time"] = "inverse_time"
    """Which schedule."""


@dataclass(frozen=True, kw_only=True)
class StepConfig:
    """The rate drops by a factor every so many steps."""

    kind: Literal["step"] = "step"
    """Which schedule."""
    every_steps: int = 10_000
    """Steps between two drops."""
    gamma: float = 0.5
    """What the rate is multiplied by at each drop."""

    def __post_init__(self) -> None:
        at_least("every_steps", self.every_steps, 1)
        within("gamma", self.gamma, low=0, high=1)


@dataclass(frozen=True, kw_only=True)
class InverseSqrtConfig:
    """Linear warm-up, then down with the root of the step (Vaswani et al. 2017, eq. 3).

    The base rate is the peak: the paper's rate is a base of 1/√(dim · warmup_steps).
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    """Which schedule."""
    warmup_steps: int = 4_000
    """Steps over which the rate first grows from zero to its base."""

    def __post_init__(self) -> None:
        at_least("warmup_steps", self.warmup_steps, 1)


@dataclass(frozen=True, kw_only=True)
class CosineConfig:
    """Linear warm-up, then half a cosine down to the last step (Loshchilov and Hutter 2017)."""

    kind: Literal["cosine"] = "cosine"
    """Which schedule."""
    warmup_steps: int = 0
    """Steps over which the rate first grows from zero to its base."""
    min_factor: float = 0.0
    """What the rate is multiplied by at the last step."""

    def __post_init__(self) -> None:
        at_least("warmup_steps", self.warmup_steps, 0)
        within("min_factor", self.min_factor, low=0, high=1)


@dataclass(frozen=True, kw_only=True)
class PlateauConfig:
    """The rate drops by a factor whenever validation stops improving."""

    kind: Literal["plateau"] = "plateau"
    """Which schedule."""
    warmup_steps: int = 0
    """Steps over which the rate first grows from zero to its base."""
    patience: int = 2
    """Validations without improvement before a drop."""
    gamma: float = 0.5
    """What the rate is multiplied by at each drop."""

    def __post_init__(self) -> None:
        at_least("warmup_steps", self.warmup_steps, 0)
        at_least("patience", self.patience, 1)
        within("gamma", self.gamma, low=0, high=1)


ScheduleConfig = (
    ConstantConfig
    | InverseTimeConfig
    | StepConfig
    | InverseSqrtConfig
    | CosineConfig
    | PlateauConfig
)


class Schedule(ABC):
    """What the base learning rate is multiplied by; without memory unless a kind has one."""

    def __init__(self, config: Any, total_steps: int) -> None:
        self.config = config
        self.total_steps = total_steps

    @abstractmethod
    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update.

        Args:
            step: Number of the update, counted from 1.
            epoch: Number of the epoch, counted from 0.
        """

    def observe(self, value: float) -> None:  # noqa: B027 - most kinds have nothing to note
        """Take note of the result of a validation; larger is better."""

    def state(self) -> dict[str, Any]:
        """Return what has to be remembered to go on later, as plain JSON."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027 - nor to take up
        """Take up what `state` returned."""


class Constant(Schedule):
    """See `ConstantConfig`."""

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        return _warmup(step, self.config.warmup_steps)


class InverseTime(Schedule):
    """See `InverseTimeConfig`."""

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        return 1 / (epoch + 1)


class Step(Schedule):
    """See `StepConfig`."""

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        return float(self.config.gamma ** ((step - 1) // self.config.every_steps))


class InverseSqrt(Schedule):
    """See `InverseSqrtConfig`."""

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        warmup: int = self.config.warmup_steps
        return min(step / warmup, math.sqrt(warmup / step))


class Cosine(Schedule):
    """See `CosineConfig`."""

    def __init__(self, config: CosineConfig, total_steps: int) -> None:
        super().__init__(config, total_steps)
        if not total_steps:
            raise ConfigError(
                "`schedule.kind` is 'cosine', which must know the last step. "
                "Set `max_steps` or `max_epochs`."
            )
        self._warmup_steps = config.warmup_steps
        if config.warmup_steps >= total_steps:
            # A short training, often on little data, should still begin and end well.
            self._warmup_steps = total_steps // 10
            logger.warning(
                "`schedule.warmup_steps` (%s) would not end before the last step (%s); warming up "
                "for %s instead.",
                f"{config.warmup_steps:,}",
                f"{total_steps:,}",
                f"{self._warmup_steps:,}",
            )

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        warmup, least = self._warmup_steps, self.config.min_factor
        if step < warmup:
            return _warmup(step, warmup)
        done = min(1.0, (step - warmup) / (self.total_steps - warmup))
        return float(least + (1 - least) * (1 + math.cos(math.pi * done)) / 2)


class Plateau(Schedule):
    """See `PlateauConfig`."""

    def __init__(self, config: PlateauConfig, total_steps: int) -> None:
        super().__init__(config, total_steps)
        self._best: float | None = None
        self._bad_validations = 0
        self._num_drops = 0

    def factor(self, step: int, epoch: int) -> float:
        """Return the factor for one update."""
        drops: float = self.config.gamma**self._num_drops
        return _warmup(step, self.config.warmup_steps) * drops

    def observe(self, value: float) -> None:
        """Count validations without improvement; drop the rate when patience is over."""
        if is_better(value, self._best):
            self._best, self._bad_validations = value, 0
            return
        self._bad_validations += 1
        if self._bad_validations == self.config.patience:
            self._num_drops += 1
            self._bad_validations = 0

    def state(self) -> dict[str, Any]:
        """Return the counts and the best value."""
        return {
            "best": self._best,
            "bad_validations": self._bad_validations,
            "num_drops": self._num_drops,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up the counts; after a change of schedule there may be none."""
        self._best = state.get("best")
        self._bad_validations = state.get("bad_validations", 0)
        self._num_drops = state.get("num_drops", 0)


SCHEDULES: dict[type, type[Schedule]] = {
    ConstantConfig: Constant,
    InverseTimeConfig: InverseTime,
    StepConfig: Step,
    InverseSqrtConfig: InverseSqrt,
    CosineConfig: Cosine,
    PlateauConfig: Plateau,
}


def build_schedule(config: ScheduleConfig, total_steps: int) -> Schedule:
    """Build the schedule that `config` describes.

    Args:
        config: Any of the schedules' settings.
        total_steps: Steps until the end of training, 0 where nobody knows.
    """
    return SCHEDULES[type(config)](config, total_steps)


def is_better(value: float, best: float | None) -> bool:
    """Tell whether a value improves on the best so far; NaN never does."""
    return not math.isnan(value) and (best is None or value > best)


def _warmup(step: int, warmup_steps: int) -> float:
    return min(1.0, step / warmup_steps) if warmup_steps else 1.0
