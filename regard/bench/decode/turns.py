"""Measurement of decoding: contenders in turns, whole passes over the sentences."""

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from regard.bench.decode.contender import DecodeContender, Entry
from regard.bench.memory import free_memory, read_peak, start_peak
from regard.bench.turns import describe_error
from regard.core.logging import logger
from regard.tasks.prediction import Prediction

NUM_WARM_UP = 2
"""Passes over a part of the sentences before the measurement."""


@dataclass
class DecodeMeasurement:
    """Measurements of one contender."""

    turns: dict[int, list[float]] = field(default_factory=dict)
    """Seconds of every pass over the sentences, by number of beams."""
    predictions: dict[int, list[Prediction]] = field(default_factory=dict)
    """Predictions of the last pass, by number of beams."""
    latencies: list[float] = field(default_factory=list)
    """Seconds of each sentence alone, in its fastest turn."""
    peak_bytes: int | None = None
    """Maximum memory that the contender allocated on a GPU; None on a CPU."""
    error: str = ""
    """Reason of the failure."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Sentences that all contenders decode."""

    sources: Sequence[str]
    """The sentences, for the throughput."""
    alone: Sequence[str]
    """Sentences that are decoded one at a time, for the latency."""
    beams: Sequence[int]
    """Numbers of beams, for the throughput."""
    latency_beams: int
    """Number of beams, for the latency."""
    warm_up: Sequence[str]
    """Sentences of the first passes."""
    rounds: int
    """Turns of each contender."""


class Turns:
    """Contenders that decode in turns, so that a busy machine slows down all of them.

    Args:
        builders: Functions that build the contenders.
        work: The sentences.
        device: The device.
    """

    def __init__(
        self,
        builders: Mapping[Entry, Callable[[], DecodeContender]],
        work: Work,
        *,
        device: torch.device,
    ) -> None:
        self._builders, self._work, self._device = builders, work, device
        self._contenders: dict[Entry, DecodeContender] = {}
        self._measurements = {entry: DecodeMeasurement() for entry in builders}

    def run(self, allocates_with_torch: Callable[[Entry], bool]) -> dict[Entry, DecodeMeasurement]:
        """Measure all contenders; one that cannot be built or fails is left out, with the reason.

        Args:
            allocates_with_torch: Whether torch counts the memory of an entry on a GPU.
        """
        for entry in self._builders:
            self._attempt(entry, lambda one: self._prepare(one, allocates_with_torch(one)))
        for beams in self._work.beams:
            for _ in range(self._work.rounds):
                for entry in list(self._contenders):
                    self._attempt(entry, partial(self._pass, beams=beams))
        for _ in range(self._work.rounds):
            for entry in list(self._contenders):
                self._attempt(entry, self._take_latencies)
        return self._measurements

    def _attempt(self, entry: Entry, action: Callable[[Entry], None]) -> None:
        try:
            action(entry)
        except Exception as error:
            self._measurements[entry] = DecodeMeasurement(error=describe_error(error))
            logger.debug("%s failed.", entry, exc_info=True)
            self._contenders.pop(entry, None)
            free_memory(self._device)

    def _prepare(self, entry: Entry, allocates_with_torch: bool) -> None:
        """Build and warm up a contender; measure its memory on a GPU."""
        work, device = self._work, self._device
        before = start_peak(device)
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
        contender = self._builders[entry]()
        for _ in range(NUM_WARM_UP):
            for beams in dict.fromkeys((*work.beams, work.latency_beams)):
                contender.decode(work.warm_up, beams)
        contender.decode(work.alone[:2], work.latency_beams)
        peak = read_peak(device, before)
        if peak is not None and not allocates_with_torch:
            # The library keeps what it has allocated.
            peak = max(0, free - torch.cuda.mem_get_info(device)[0])
        self._measurements[entry].peak_bytes = peak
        self._contenders[entry] = contender
        gc.collect()

    def _pass(self, entry: Entry, *, beams: int) -> None:
        seconds, predictions = self._contenders[entry].measure(self._work.sources, beams)
        measured = self._measurements[entry]
        measured.turns.setdefault(beams, []).append(seconds)
        measured.predictions[beams] = predictions

    def _take_latencies(self, entry: Entry) -> None:
        contender, measured = self._contenders[entry], self._measurements[entry]
        beams = self._work.latency_beams
        latencies = [contender.measure([source], beams)[0] for source in self._work.alone]
        before = measured.latencies or latencies
        measured.latencies = [min(pair) for pair in zip(before, latencies, strict=True)]
