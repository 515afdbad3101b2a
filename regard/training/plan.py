"""Plan of a training run: its data by epoch, its start and its limits."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from regard.core.errors import DataError
from regard.training.progress import Progress, Reason
from regard.training.settings import TrainConfig

Row = dict[str, Any]
"""One event of a run: `kind`, `step` and the fields of that kind of event."""


class Batches(Protocol):
    """Training data by epoch. The order of batches depends on the epoch number only.

    Batches are prefetched in another thread, so they must not use torch's global generators.
    """

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Any]:
        """Yield the batches of an epoch after the first `skip`; each has `num_target_tokens`."""

    def num_batches(self, number: int) -> int:
        """Return the number of batches of an epoch."""


@dataclass(frozen=True)
class Plan:
    """Start and limits of a training run."""

    step: int = 0
    """Steps before the start."""
    seconds: float = 0.0
    """Training time before the start."""
    total_steps: int = 0
    """Maximum number of steps; 0 = no limit."""
    max_seconds: float = 0.0
    """Maximum training time; 0 = no limit."""
    steps_per_epoch: int = 1
    """Approximate number of steps of an epoch."""
    batches_per_epoch: int = 0
    """Number of batches of an epoch; 0 = unknown."""
    max_epochs: int = 0
    """Maximum number of epochs; 0 = no limit."""
    validate_every: int = 0
    """Steps between two validations; 0 = an epoch."""
    patience: int = 0
    """Validations without improvement before early stopping; 0 = never."""
    unit: str = "tok"
    """Unit of the throughput: `tok` for tokens, `examples`."""
    best: Row | None = None
    """Event of the best validation so far, of a resumed run."""

    def epoch(self, step: int) -> str:
        """Return the epoch of a step, counted from 1, with their number if they are the limit."""
        number = max(step - 1, 0) // self.steps_per_epoch + 1
        if not self.max_epochs or self.max_epochs * self.steps_per_epoch > self.total_steps:
            return f"{number}"
        return f"{min(number, self.max_epochs)}/{self.max_epochs}"

    def steps(self, step: int) -> str:
        """Return a step, with the number of steps if limited."""
        return f"{step:,}/{self.total_steps:,}" if self.total_steps else f"{step:,}"

    def remaining_seconds(self, step: int, seconds: float, per_step: float) -> float:
        """Return the training time that is left, by the limit that is nearest; without limits, inf.

        Args:
            step: Number of updates made.
            seconds: Training time so far.
            per_step: Seconds per update.
        """
        return min(
            (self.total_steps - step) * per_step if self.total_steps else math.inf,
            self.max_seconds - seconds if self.max_seconds else math.inf,
        )

    def fraction(self, step: int, seconds: float) -> float:
        """Return the completed part of training, by the limit that is nearest."""
        return max(
            step / self.total_steps if self.total_steps else 0.0,
            seconds / self.max_seconds if self.max_seconds else 0.0,
        )


def build_plan(config: TrainConfig, batches: Batches, *, unit: str) -> Plan:
    """Return the plan of a run that starts at step 0."""
    num_batches = batches.num_batches(0)
    if not num_batches:
        raise DataError(
            "The training data has no batches. Is the file empty, or is every line too long?"
        )
    per_epoch = math.ceil(num_batches / config.accumulate)
    limits = (config.max_steps, config.max_epochs * per_epoch)
    return Plan(
        total_steps=min((limit for limit in limits if limit), default=0),
        max_seconds=config.max_minutes * 60,
        steps_per_epoch=per_epoch,
        batches_per_epoch=num_batches,
        max_epochs=config.max_epochs,
        validate_every=config.validate_every,
        patience=config.patience,
        unit=unit,
    )


def reason_to_stop(config: TrainConfig, progress: Progress, seconds: float) -> Reason | None:
    """Return which limit a training has reached, or None.

    Args:
        config: Settings with the limits.
        progress: Counters of the run.
        seconds: Training time so far.
    """
    limits: dict[Reason, tuple[float, float]] = {
        "patience": (config.patience, progress.bad_validations),
        "steps": (config.max_steps, progress.step),
        "epochs": (config.max_epochs, progress.epoch),
        "minutes": (config.max_minutes, seconds / 60),
    }
    return next((reason for reason, (limit, value) in limits.items() if 0 < limit <= value), None)


def is_validation_due(config: TrainConfig, progress: Progress) -> bool:
    """Return whether a run is to be validated at its current step."""
    if progress.step == progress.validated_step:
        return False
    every = config.validate_every
    return progress.step % every == 0 if every else progress.position == 0
