"""Runs of a server: each with its model, its queue and its thread."""

import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from regard.core.device import set_own_threads
from regard.core.errors import ConfigError, RegardError
from regard.core.logging import logger
from regard.runs.ensemble import split_folders
from regard.runs.folder import load, read_test_set
from regard.runs.saved.config import read_config
from regard.serve.batching import Batcher
from regard.serve.errors import RequestError
from regard.serve.text.languages import LanguageDetector, find_pair
from regard.tasks.base import Attends, Embeds, Generates, Task
from regard.tasks.decoding.alternatives import HasScorers
from regard.tasks.decoding.preparation import NUM_ROWS
from regard.tasks.reading import find_modality
from regard.tasks.search import override_task_search

NUM_SAMPLES = 1_000
"""Number of pairs of the test set from which the detector of languages learns."""

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class ServedRun:
    """A run that answers requests."""

    name: str
    task: Task[Any]
    batcher: Batcher
    languages: tuple[str, str] | None = None
    """Codes of the languages of source and target, if it translates texts."""

    @property
    def modality(self) -> str:
        """The modality of the sources."""
        return find_modality(self.task.recipe.data).name

    @property
    def features(self) -> list[str]:
        """Features that requests may ask for beside predictions."""
        task, found = self.task, []
        generates = isinstance(task, Generates)
        if generates:
            found.append("stream")
        if isinstance(task, Attends):
            found.append("attention")
        if generates and isinstance(task, HasScorers):
            found += ["alternatives", "beam"]
        if generates or task.label_names:
            found += ["attribution", "what-if"]
        if isinstance(task, Embeds):
            found.append("embed")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the description for `/v1/models`."""
        return {
            "id": self.name,
            "object": "model",
            "created": 0,
            "owned_by": "regard",
            "status": "ready" if self.batcher.is_working else "failed",
            "task": self.task.recipe.task,
            "modality": self.modality,
            "parameters": self.task.num_parameters,
            "languages": list(self.languages) if self.languages else None,
            "features": self.features,
        }


@dataclass(frozen=True)
class Runs:
    """All runs of a server by name, and the runs that could not be loaded."""

    ready: dict[str, ServedRun] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Error messages by name."""
    detector: LanguageDetector = field(default_factory=partial(LanguageDetector, {}))

    def find(self, name: str | None) -> ServedRun:
        """Return a run by its name; the first one if no name is given."""
        if not self.ready and not self.failed:
            raise RequestError(404, "This server has no models. `regard serve RUN` serves one.")
        if name is None:
            return next(iter(self.ready.values()))
        if name in self.ready:
            return self.ready[name]
        if name in self.failed:
            raise RequestError(503, f"The model '{name}' could not be loaded.")
        known = ", ".join(f"'{one}'" for one in self.ready)
        raise RequestError(404, f"`model` must be one of {known}, but is '{name[:100]}'.")

    def close(self) -> None:
        """Complete all requests that wait and end the threads."""
        for run in self.ready.values():
            run.batcher.close()


def load_runs(
    arguments: Iterable[str],
    *,
    device: str,
    max_batch: int | None,
    max_waiting: int,
    max_seconds: float = math.inf,
    report: Callable[[str], Callable[[int, float], None]],
) -> Runs:
    """Load runs; log those that cannot be loaded, and raise if there is no other.

    Args:
        arguments: Run folders, each perhaps with a name: `en-de=runs/mine`.
        device: Device of the models.
        max_batch: Maximum number of sources in a batch; by the number of beams if not given.
        max_waiting: Maximum number of sources of a run that wait.
        max_seconds: Maximum time that they are expected to wait.
        report: Function from the name of a run to the receiver of its batches.
    """
    ready: dict[str, ServedRun] = {}
    failed: dict[str, str] = {}
    samples: dict[str, list[str]] = {}
    error: RegardError | None = None
    # Threads of runs begin with the number that was set last, perhaps by a search of one core.
    prepare = partial(set_own_threads, torch.get_num_threads())
    for argument in arguments:
        name, folder = _split_name(argument)
        if name in ready or name in failed:
            raise ConfigError(
                f"Two runs have the name '{name}'. Name one of them: `other={folder}`."
            )
        try:
            # The precision `auto` is chosen now, not while requests wait.
            task = override_task_search(load(folder, device))
        except RegardError as caught:
            error = error or caught
            failed[name] = str(caught)
            continue
        languages = _find_languages(name, folder, task)
        batcher = Batcher(
            name,
            max_batch=max_batch or _best_batch(task),
            max_waiting=max_waiting,
            max_seconds=max_seconds,
            report=report(name),
            prepare=prepare,
        )
        ready[name] = ServedRun(name=name, task=task, batcher=batcher, languages=languages)
        if languages is not None:
            _add_samples(samples, languages, folder)
    if not ready:
        raise error or ConfigError("`regard serve` needs a run.")
    for name, message in failed.items():
        logger.error("%s is not served: %s", name, message)
    return Runs(ready, failed, LanguageDetector(samples))


def find_folders(arguments: Iterable[str]) -> dict[str, Path]:
    """Return the folders of runs by their names; the members of an ensemble by those of folders."""
    found: dict[str, Path] = {}
    for name, argument in map(_split_name, arguments):
        folders = [Path(folder) for folder in split_folders(argument)]
        for folder in folders:
            found.setdefault(name if len(folders) == 1 else folder.name or "run", folder)
    return found


def _split_name(argument: str) -> tuple[str, str]:
    """Return the name of a run and its folder."""
    if (match := _NAMED.fullmatch(argument)) and not Path(argument).exists():
        return match[1], match[2]
    return "+".join(folder.name or "run" for folder in map(Path, argument.split(","))), argument


def _find_languages(name: str, folder: str, task: Task[Any]) -> tuple[str, str] | None:
    if not isinstance(task, Generates) or find_modality(task.recipe.data).name != "text":
        return None
    about = read_config(split_folders(folder)[0])["about"]
    return find_pair(name, (str(one) for one in about.get("data", ())))


def _add_samples(samples: dict[str, list[str]], languages: tuple[str, str], folder: str) -> None:
    """Add the test set of a run to the texts of its languages, if there is one."""
    source, target = (samples.setdefault(code, []) for code in languages)
    with suppress(RegardError):
        for example in islice(read_test_set(folder), NUM_SAMPLES):
            source.append(str(example.source))
            target.append(example.target)


def _best_batch(task: Task[Any]) -> int:
    """Return the number of sources that a search computes at once, or less if a GPU is idle."""
    beams = task.search.beams if isinstance(task, Generates) else 1
    return max(1, NUM_ROWS // beams)
