"""Measurement of several contenders in turns, so that a busy machine slows down all of them."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from regard.bench.contender import Contender
from regard.bench.memory import free_memory, read_peak, start_peak
from regard.core.errors import RegardError
from regard.core.logging import logger
from regard.training.compilation import MEASURED_STEPS

Key = TypeVar("Key", bound=Hashable)

WARMUP_STEPS = 3
"""First steps on a CPU, which compile and allocate."""

GPU_WARMUP_STEPS = MEASURED_STEPS[1] + 10
"""First steps on a GPU, where the trainer of this package compiles after `MEASURED_STEPS`."""


@dataclass
class Measurement:
    """Measurements of one contender; without turns if it failed."""

    turns: list[float] = field(default_factory=list)
    """Seconds per step of every turn."""
    steps_per_turn: int = 0
    """Steps of a turn."""
    num_parameters: int = 0
    """Number of trained parameters."""
    compile_seconds: float = 0.0
    """Time of the first steps beyond that of as many later steps."""
    peak_bytes: int | None = None
    """Maximum memory that the contender allocated on a GPU; None on a CPU."""
    note: str = ""
    """Note of the contender."""
    error: str = ""
    """Reason of the failure."""


def measure_in_turns(
    builders: Mapping[Key, Callable[[], Contender]],
    *,
    rounds: int,
    seconds: float,
    device: torch.device,
    each_round: Callable[[], None] = lambda: None,
) -> dict[Key, Measurement]:
    """Measure contenders: in every round, each of them trains for one turn.

    A contender that cannot be built or fails later is left out, with the reason.

    Args:
        builders: Functions that build the contenders.
        rounds: Number of rounds.
        seconds: Approximate time of a turn.
        device: The device, to measure memory.
        each_round: Called once in every round, to measure something else in turn.
    """
    measurements = {key: Measurement() for key in builders}
    contenders: dict[Key, Contender] = {}

    def attempt(key: Key, action: Callable[[Key], None]) -> None:
        try:
            action(key)
        except Exception as error:
            measurements[key].error = describe_error(error)
            measurements[key].turns.clear()
            logger.debug("%s failed.", key, exc_info=True)
            if key in contenders:
                contenders.pop(key).close()
                free_memory(device)

    def prepare(key: Key) -> None:
        before = start_peak(device)
        contenders[key] = builders[key]()
        num_steps = WARMUP_STEPS if device.type == "cpu" else GPU_WARMUP_STEPS
        _warm_up(contenders[key], measurements[key], num_steps, seconds=seconds)
        measurements[key].peak_bytes = read_peak(device, before)

    def take_turn(key: Key) -> None:
        num_steps = measurements[key].steps_per_turn
        measurements[key].turns.append(contenders[key].run(num_steps) / num_steps)

    try:
        for key in builders:
            attempt(key, prepare)
        for _ in range(rounds):
            each_round()
            for key in list(contenders):
                attempt(key, take_turn)
    finally:
        for contender in contenders.values():
            contender.close()
        contenders.clear()
        free_memory(device)
    return measurements


def _warm_up(
    contender: Contender, measurement: Measurement, num_steps: int, *, seconds: float
) -> None:
    """Train `num_steps` steps, then until the time of a step is known; fill the measurement."""
    total = contender.run(num_steps)
    more_steps, elapsed, step = 1, 0.0, math.inf
    while elapsed < seconds / 4:
        elapsed = contender.run(more_steps)
        step = min(step, elapsed / more_steps)
        num_steps, total = num_steps + more_steps, total + elapsed
        more_steps *= 2
    measurement.steps_per_turn = max(1, math.ceil(seconds / step))
    measurement.compile_seconds = max(0.0, total - num_steps * step)
    measurement.num_parameters = contender.num_parameters
    measurement.note = contender.note


def describe_error(error: Exception) -> str:
    """Return an error as one line."""
    text = str(error).strip().partition("\n")[0]
    return text if isinstance(error, RegardError) else f"{type(error).__name__}: {text}"
