"""Result of a validation, and the report of over-fitting: a validation loss that has risen."""

import math
from dataclasses import dataclass, field

from regard.core.logging import logger
from regard.training.progress import Progress
from regard.training.schedules import is_better

NUM_HIGHER = 5
"""Validations with a higher loss than the lowest after which over-fitting is reported."""

MIN_RISE = 0.05
"""Relative rise of the validation loss that is reported; smaller ones may be noise."""


@dataclass(frozen=True)
class Validation:
    """Result of a validation."""

    value: float
    """Value that selects the best weights; larger is better."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Metrics for the training log."""
    metric: str = ""
    """Name of the one that `value` is computed from."""

    def replaces_metric(self, progress: Progress) -> bool:
        """Return whether validations had another metric; if so, reset the best score of a run."""
        before, progress.metric = progress.metric, self.metric
        if before in ("", self.metric):
            return False
        logger.warning(
            "The validation metric was %s and is %s now. The best score so far, of step %s, is "
            "reset.",
            before,
            self.metric,
            f"{progress.best_step:,}",
        )
        progress.best = progress.best_loss = None
        progress.bad_validations = 0
        return True

    def is_best(self, progress: Progress) -> bool:
        """Return whether its weights are the best so far.

        Early in training a metric is often 0: of equal values, the lower loss is better.
        """
        loss, best_loss = self.metrics.get("loss"), progress.best_loss
        if loss is not None and best_loss is not None and self.value == progress.best:
            return loss < best_loss
        return is_better(self.value, progress.best)

    def count(self, progress: Progress) -> None:
        """Update the counters of a run."""
        is_best, is_improved = self.is_best(progress), is_better(self.value, progress.best)
        if is_best:
            progress.best, progress.best_step = self.value, progress.step
            progress.best_loss = self.metrics.get("loss")
        if is_improved:
            progress.bad_validations = 0
            progress.is_overfitting_reported = False


def report_overfitting(progress: Progress, loss: float, *, patience: int) -> None:
    """Log once after each best validation that the validation loss has risen.

    Args:
        progress: Counters of the run, updated here.
        loss: Loss of the current validation; not finite if there is none.
        patience: Validations without improvement before early stopping; 0 = never.
    """
    lowest = progress.lowest_loss
    if not math.isfinite(loss):
        return
    if lowest is None or loss <= lowest:
        progress.lowest_loss, progress.higher_losses = loss, 0
        return
    progress.higher_losses += 1
    has_risen = loss - lowest > MIN_RISE * abs(lowest)
    if progress.higher_losses < NUM_HIGHER or not has_risen or progress.is_overfitting_reported:
        return
    if 0 < patience <= progress.bad_validations:
        return  # training stops for this reason
    progress.higher_losses, progress.is_overfitting_reported = 0, True
    advice = "" if patience else f"stop earlier with train.patience={NUM_HIGHER}, or "
    logger.warning(
        f"validation loss has risen since {NUM_HIGHER} validations ({lowest:.3g} → {loss:.3g}); "
        f"the model over-fits: {advice}use more data or dropout"
    )
