"""Loggers: receivers of the events of a training run, such as displays and TensorBoard."""

from collections.abc import Iterator
from contextlib import contextmanager

from regard.training.plan import Plan, Row


class Logger:
    """Receiver of the events of a training run; ignores them all.

    A subclass overrides the methods it needs; for experiment trackers, `write` and `close`.
    """

    def truncate(self, after: int) -> None:
        """Drop the events of later steps, which are repeated. Also called before `start`."""

    def start(self, plan: Plan) -> None:
        """Start at a step: 0, or that of the state from which a run is resumed."""

    def advance(self, step: int) -> None:
        """Record a step. Called at every step, so it must be cheap."""

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Record a validation during the block."""
        yield

    def write(self, row: Row) -> None:
        """Record an event, the same as in the training log.

        Args:
            row: `kind`, `step`, `epoch` (from 1), `seconds`, and the values of that kind: "train"
                (means since the last such event), "valid" (a validation), "average" (a validation
                of averaged weights) or "stop" (the reason).
        """

    def close(self) -> None:
        """End, also after an error or an interruption."""


def scalars(row: Row) -> dict[str, float]:
    """Return the numbers of an event as `kind/name`, such as `train/loss` and `valid/bleu`."""
    return {
        f"{row['kind']}/{name}": float(value)
        for name, value in row.items()
        if name not in _COMMON and isinstance(value, int | float)
    }


_COMMON = ("kind", "step", "epoch", "seconds", "is_best")
