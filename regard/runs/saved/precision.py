"""Choice of the precision of search: the fastest one without a loss of BLEU, measured once."""

import copy
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar, get_args

import torch

from regard.core.checksums import check_file, write_listed_json
from regard.core.device import describe_hardware
from regard.core.errors import CheckpointError, ConfigError, RegardError
from regard.core.files import read_record, sha256
from regard.core.logging import logger
from regard.core.native.bindings import find_kernels
from regard.core.progress import show_message, without_progress
from regard.core.records import Finite, check_run_file
from regard.data.example import Example
from regard.metrics.text.bleu import bleu
from regard.models.packing import SearchPrecision
from regard.runs.lock import FolderLock
from regard.runs.saved.data import read_run_data
from regard.tasks.base import Generates, Task
from regard.tasks.decoding.preparation import PACKED_MODELS
from regard.tasks.generation.finding import predict_packed
from regard.tasks.generation.task import Predictor

AnyTask = TypeVar("AnyTask", bound=Task[Any])

PRECISION = "precision.json"

TASKS = ("generation", "autoencoding")
"""Tasks of encoder–decoders whose validation data are sources with their targets."""

PRECISIONS: tuple[SearchPrecision, ...] = get_args(SearchPrecision)
"""All precisions; fp32, which the others are compared with, is the first."""

MAX_LOSS = 0.1
"""Maximum loss of BLEU, compared with fp32."""

MAX_SENTENCES = 500
"""Maximum number of sentences to measure with."""

NUM_TRIED = 8
"""Number of sentences that each precision predicts first."""

MAX_SLOWDOWN = 3.0
"""Multiple of the time of fp32 for the first sentences from which a precision is left out: without
instructions for it, a processor may take a hundred times as long."""

NUM_PASSES = 2
"""Passes over the sentences in each precision, of which the fastest counts."""


class Speed(TypedDict):
    """Measurements of a precision."""

    sentences_per_second: Finite
    bleu: Finite


class Choice(TypedDict):
    """The precision for one kind of hardware, with the measurements that it was chosen by."""

    precision: str
    sentences: int
    beams: int
    measured: dict[str, Speed]
    weights: str


class PrecisionFinder:
    """Finds the precision of a run for `search.precision=auto`: stored, or else measured.

    Args:
        weights: The weights of the run, in its folder.
    """

    def __init__(self, weights: Path) -> None:
        self._weights = weights
        self._found: dict[str, SearchPrecision] = {}

    def __call__(self, task: Predictor) -> SearchPrecision:
        """Return the precision for the device of the task and the number of threads."""
        threads = torch.get_num_threads()
        noun = "thread" if threads == 1 else "threads"
        hardware = f"{describe_hardware(task.device)}, {threads} {noun}"
        if task.device.type == "cpu" and find_kernels() is not None:
            hardware += ", kernels"
        if hardware not in self._found:
            choice = self._find(task, hardware)
            (self._found[hardware],) = (p for p in PRECISIONS if p == choice["precision"])
            logger.info("%s", describe(choice))
        return self._found[hardware]

    def _find(self, task: Predictor, hardware: str) -> Choice:
        """Return the stored choice; measure if there is none for these weights and hardware."""
        check_run_file(self._weights)
        weights, path = sha256(self._weights), self._weights.with_name(PRECISION)
        try:
            stored = read_choices(path).get(hardware)
        except CheckpointError as error:
            logger.warning("%s The precisions are measured again.", error)
            stored = None
        if stored is not None and stored["weights"] == weights:
            return stored
        examples = read_examples(path.parent, task)
        with show_message("Measuring the precisions of search"), without_progress():
            # In an empty context, since a beam tree of the caller may be recorded in this one.
            measured = Context().run(measure, task, examples)
        PACKED_MODELS.forget(task.model)
        choice = Choice(
            precision=choose(measured),
            sentences=len(examples),
            beams=task.search.beams,
            measured=measured,
            weights=weights,
        )
        _store(path, hardware, choice)
        return choice


def attach_finder(task: Task[Any], weights: Path) -> None:
    """Let a task choose its precision for `search.precision=auto`, if its class can.

    Args:
        task: The task.
        weights: Its weights, in its run folder.
    """
    if isinstance(task, Predictor) and task.recipe.task in TASKS:
        task.find_precision = PrecisionFinder(weights)


def without_auto(task: AnyTask) -> AnyTask:
    """Return the task with fp32 instead of `auto`: the evaluation of training measures nothing."""
    if isinstance(task, Generates) and task.search.precision == "auto":
        return task.with_search(replace(task.search, precision="fp32"))
    return task


def read_choices(path: Path) -> dict[str, Choice]:
    """Return the choices by hardware; none without a file. Raise `CheckpointError` for damage."""
    if not os.path.lexists(path):
        return {}
    check_file(path)
    choices = read_record(path, dict[str, Choice])
    for hardware, choice in choices.items():
        if choice["precision"] not in PRECISIONS or "fp32" not in choice["measured"]:
            raise CheckpointError(f"{path} has no precision for '{hardware}'. The file is damaged.")
    return choices


def _store(path: Path, hardware: str, choice: Choice) -> None:
    """Add a choice to the file, unless the folder cannot be written or is being trained."""
    try:
        with FolderLock(path.parent):  # the list of checksums has one writer
            others: dict[str, Choice] = {}
            with suppress(CheckpointError):
                others = read_choices(path)
            write_listed_json(path, {**others, hardware: choice})
    except (RegardError, OSError) as error:
        logger.warning("The precision is not stored, so it will be measured again: %s", error)


def read_examples(folder: Path, task: Predictor) -> list[Example]:
    """Return validation examples of a run, spread evenly; raise `ConfigError` if there are none."""
    try:
        valid = read_run_data(folder, task).valid
        reason = "" if valid else "there is none."
    except (RegardError, OSError) as error:
        reason = str(error)
    if reason:
        raise ConfigError(
            f"`search.precision` 'auto' needs the validation data of {folder}, which cannot be "
            f"read: {reason} Set search.precision=fp32."
        )
    return list(valid[:: -(-len(valid) // MAX_SENTENCES)])


def measure(task: Predictor, examples: Sequence[Example]) -> dict[str, Speed]:
    """Return the speed and the BLEU of each precision that the device supports.

    Args:
        task: The run.
        examples: Sources with their targets.
    """
    bare = copy.copy(task)
    bare.lexical = None
    # BLEU of samples would depend on chance.
    search = replace(task.search, temperature=0.0)
    sources = [task.parse_source(example.source) for example in examples]

    def predict(precision: SearchPrecision, num: int | None = None) -> tuple[float, list[str]]:
        """Return the seconds for the first `num` sources, and the texts of their predictions."""
        started = time.perf_counter()
        best = predict_packed(bare, sources[:num], replace(search, precision=precision))
        return time.perf_counter() - started, [one[0].text for one in best]

    seconds = {"fp32": _try(predict, "fp32")}
    for precision in find_supported(task.device):
        try:
            seconds[precision] = _try(predict, precision)
        except Exception as error:  # such as an operation that this build of torch lacks
            logger.debug("%s is left out: %s", precision, error)
    tried = [one for one in PRECISIONS if one in seconds]
    kept = [one for one in tried if seconds[one] <= MAX_SLOWDOWN * seconds["fp32"]]
    for precision in set(tried) - set(kept):
        logger.info("%s is left out: it is too slow on this device.", precision)
    # In turns, so that a busy machine slows down all of them.
    passes = [{one: predict(one) for one in kept} for _ in range(NUM_PASSES)]
    references = [[example.target, *example.references] for example in examples]
    return {
        one: Speed(
            sentences_per_second=Finite(len(examples) / min(done[one][0] for done in passes)),
            bleu=Finite(bleu(passes[-1][one][1], references).value),
        )
        for one in kept
    }


def _try(predict: Any, precision: SearchPrecision) -> float:
    """Return the seconds for the first sentences, after packing the weights and a warm-up."""
    seconds: list[float] = [predict(precision, NUM_TRIED)[0] for _ in range(3)]
    return min(seconds[1:])


def find_supported(device: torch.device) -> tuple[SearchPrecision, ...]:
    """Return the precisions besides fp32 that a type of device may support."""
    return PRECISIONS[1:] if device.type == "cpu" else ("bf16",)


def choose(measured: Mapping[str, Speed]) -> str:
    """Return the fastest precision whose BLEU is near that of fp32, or above."""
    least = measured["fp32"]["bleu"] - MAX_LOSS
    fitting = [one for one, speed in measured.items() if speed["bleu"] >= least]
    return max(fitting, key=lambda one: measured[one]["sentences_per_second"])


def describe(choice: Choice) -> str:
    """Return the choice and its measurements for a message."""
    speeds = "; ".join(
        f"{name} {speed['sentences_per_second']:,.1f} sentences/s, BLEU {speed['bleu']:.2f}"
        for name, speed in choice["measured"].items()
    )
    return (
        f"Precision of search: auto ({choice['precision']}), measured on {choice['sentences']:,} "
        f"validation examples with {choice['beams']} "
        f"{'beam' if choice['beams'] == 1 else 'beams'}: {speeds}."
    )
