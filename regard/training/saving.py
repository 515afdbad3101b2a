"""Checkpoints of a running training: when one is due, and writing it in the background."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from regard.training.checkpoint import Snapshot, write_snapshot
from regard.training.settings import TrainConfig


class Saver:
    """Writes training states in a thread, one at a time.

    Args:
        run: The run folder.
        every_minutes: Minutes between two states; 0 = not by time.
        every_steps: Steps between two states; 0 = not by steps.
    """

    def __init__(self, run: Path, *, every_minutes: float, every_steps: int) -> None:
        self._run = run
        self._every_seconds = 60 * every_minutes
        self._every_steps = every_steps
        self._last = (0, 0.0)
        self._writing: Future[None] | None = None

    @contextmanager
    def opened(self, step: int, seconds: float) -> Iterator[None]:
        """Start to count at a step; wait for the last state at the end of the block."""
        self._last = (step, seconds)
        with ThreadPoolExecutor(1, thread_name_prefix="checkpoint") as self._pool:
            yield
        self.wait()

    @property
    def is_periodic(self) -> bool:
        """Whether states are due at intervals."""
        return bool(self._every_seconds or self._every_steps)

    def is_due(self, step: int, seconds: float) -> bool:
        """Return whether the state after a step is due; raise the error of the last one, if any.

        Args:
            step: Number of updates made.
            seconds: Training time so far.
        """
        if self._writing is not None and self._writing.done():
            self.wait()
        last_step, last_seconds = self._last
        return (
            0 < self._every_steps <= step - last_step
            or 0 < self._every_seconds <= seconds - last_seconds
        )

    def save(self, snapshot: Snapshot, *, step: int, seconds: float) -> None:
        """Copy the state after a step and write it in the thread, after the one before it."""
        self.wait()
        self._last = (step, seconds)
        self._writing = self._pool.submit(write_snapshot, self._run, _copy(snapshot))

    def wait(self) -> None:
        """Wait until the last state is written; raise its error, if any."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()


class NoSaver(Saver):
    """Saver of a process that writes nothing, as the first of several processes does."""

    def save(self, snapshot: Snapshot, *, step: int, seconds: float) -> None:
        """Record when the first process saves."""
        self._last = (step, seconds)


def build_saver(config: TrainConfig, run: Path, *, is_writing: bool) -> Saver:
    """Build the saver of a run folder; one without effect if this process does not write."""
    kind = Saver if is_writing else NoSaver
    return kind(run, every_minutes=config.save_every_minutes, every_steps=config.save_every_steps)


def _copy(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with copies of all tensors in main memory."""
    return replace(
        snapshot,
        weights=_copy_tensors(snapshot.weights),
        averages=_copy_tensors(snapshot.averages),
        moments={name: _copy_tensors(values) for name, values in snapshot.moments.items()},
        rng=_copy_tensors(snapshot.rng),
    )


def _copy_tensors(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
