"""Contenders of a training benchmark: interface, and the trainer of this package in turns."""

import queue
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path

import torch

from regard.tasks.generation.task import Predictor
from regard.training.loggers.logger import Logger
from regard.training.loop import Trainer
from regard.training.plan import Batches, Plan
from regard.training.validation import Validation


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished; a CPU always has."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


class Contender(ABC):
    """A model with its training loop, which trains some steps at a time."""

    note: str = ""
    """Deviation from the settings, shown in the results."""

    num_parameters: int
    """Number of trained parameters."""

    @abstractmethod
    def run(self, num_steps: int) -> float:
        """Train for `num_steps` steps; return the seconds until the device has finished them."""

    @abstractmethod
    def close(self) -> None:
        """Stop and free what the contender holds."""


class _StopTraining(Exception):  # noqa: N818
    """Ends a training without saving it."""


class _Turns(Logger):
    """Logger that pauses the training loop between turns and measures the turns."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._orders: queue.Queue[int] = queue.Queue()
        self._results: queue.Queue[float | BaseException] = queue.Queue()

    def take(self, num_steps: int) -> float:
        """Let the training loop make `num_steps` steps and return their seconds."""
        self._orders.put(num_steps)
        result = self._results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def end(self) -> None:
        """Make the training loop end at once."""
        self._orders.put(0)

    def fail(self, error: BaseException) -> None:
        """Report an error of the training loop to the waiting thread."""
        self._results.put(error)

    def start(self, plan: Plan) -> None:
        """Wait for the first turn."""
        self._wait(plan.step)

    def advance(self, step: int) -> None:
        """Count a step; after the last one of a turn, wait for the next turn."""
        if step >= self._last:
            synchronize(self._device)
            self._results.put(time.perf_counter() - self._started)
            self._wait(step)

    def _wait(self, step: int) -> None:
        num_steps = self._orders.get()
        if not num_steps:
            raise _StopTraining
        self._last = step + num_steps
        synchronize(self._device)
        self._started = time.perf_counter()


class TrainerContender(Contender):
    """The `Trainer` of this package, unchanged, in a thread that waits between turns."""

    def __init__(self, task: Predictor, batches: Batches) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._turns = _Turns(task.device)
        self.num_parameters = task.num_parameters
        trainer = Trainer(
            task.model,
            # Other implementations write no checkpoints.
            replace(task.recipe.train, save_every_minutes=0.0, save_every_steps=0),
            Path(self._folder.name),
            batches=batches,
            loss=task.loss,
            validate=lambda: Validation(0.0),
            loggers=[self._turns],
        )
        arguments = (trainer, torch.get_num_threads())
        self._thread = threading.Thread(target=self._train, args=arguments, daemon=True)
        self._thread.start()

    def _train(self, trainer: Trainer, num_threads: int) -> None:
        # The number of threads of the CPU is a setting of each thread.
        torch.set_num_threads(num_threads)
        try:
            trainer.run()
        except _StopTraining:
            pass
        except BaseException as error:
            self._turns.fail(error)

    def run(self, num_steps: int) -> float:
        """Train for `num_steps` steps; return their seconds."""
        return self._turns.take(num_steps)

    def close(self) -> None:
        """Stop the thread and remove the run folder, to which nothing but the log is written."""
        self._turns.end()
        self._thread.join()
        self._folder.cleanup()
