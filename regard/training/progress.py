"""Progress of a training run: counters that are saved with its state."""

from dataclasses import dataclass
from typing import Literal

Reason = Literal["steps", "epochs", "minutes", "patience", "interrupted"]
"""Reason for the end of a training."""

RETURN_FACTOR = 0.5
"""Factor of the learning rate at each return to a checkpoint."""


@dataclass
class Progress:
    """Counters of a run: the part of its state that is not tensors."""

    step: int = 0
    """Updates made."""
    epoch: int = 0
    """Epochs completed, and so the index of the current epoch."""
    position: int = 0
    """Batches used in the current epoch."""
    tokens: int = 0
    """Target tokens seen."""
    seconds: float = 0.0
    """Training time so far."""
    validated_step: int = 0
    """Step of the last validation."""
    best: float | None = None
    """Best validation value so far."""
    metric: str = ""
    """Metric of the validations so far; empty if unknown."""
    best_step: int = 0
    """Step of the best validation."""
    best_loss: float | None = None
    """Loss of the best validation, which decides between equal values; None if unknown."""
    bad_validations: int = 0
    """Validations since the best one."""
    lowest_loss: float | None = None
    """Lowest validation loss so far."""
    higher_losses: int = 0
    """Validations with a higher loss since the lowest one or the last report of over-fitting."""
    is_overfitting_reported: bool = False
    """Whether over-fitting has been reported since the best validation."""
    num_returns: int = 0
    """Returns to a checkpoint after steps that were not finite."""

    @property
    def rate_factor(self) -> float:
        """Factor of the learning rate after the returns to a checkpoint."""
        return float(RETURN_FACTOR**self.num_returns)


@dataclass(frozen=True)
class Summary:
    """Outcome of a training run."""

    stopped: Reason
    """Reason for the end."""
    progress: Progress
    """Counters at the end."""
