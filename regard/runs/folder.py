"""The run folder: complete in itself, and safe to open whoever made it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

import regard
from regard.core.config import to_dict
from regard.core.device import describe_hardware, find_device
from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import read_json, write_json
from regard.data.text.readers import read_examples
from regard.runs.ensemble import assemble, split_folders
from regard.tasks.base import Task
from regard.tasks.recipe import BaseRecipe
from regard.tasks.table import task_class, to_recipe
from regard.training.checkpoint import load_weights

AnyTask = TypeVar("AnyTask", bound=Task[Any])

FORMAT = 2
"""Version of the folder's layout; raised when an older reader would go wrong."""

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
METRICS = "metrics.json"
JOURNAL = "journal.jsonl"
TEST = "test.jsonl"
PREDICTIONS = "predictions.json"
REPORT = "report.html"


def save_start(folder: Path, task: Task[Any], about: dict[str, Any]) -> None:
    """Write everything but weights: settings, vocabularies, and how the run was made.

    What an earlier run found goes first: it would pass for the outcome of this one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in (WEIGHTS, METRICS, PREDICTIONS, REPORT):
        (folder / name).unlink(missing_ok=True)
    task.save(folder)
    write_json(folder / CONFIG, {"format": FORMAT, "recipe": to_dict(task.recipe), "about": about})


def read_config(folder: Path) -> dict[str, Any]:
    """Read a run's settings, or say why this is not a run folder."""
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder} is not a folder. Give a run folder made by `regard train`."
        )
    config: dict[str, Any] = read_json(folder / CONFIG)
    version = config.get("format")
    if version != FORMAT:
        is_older = isinstance(version, int) and version < FORMAT
        what = "Train again" if is_older else "Upgrade with `pip install -U regard`"
        raise CheckpointError(
            f"{folder} was saved in format {version}; this version reads format {FORMAT}. {what}."
        )
    return config


def load(
    folder: str | Path, device: str = "auto", *, recipe: BaseRecipe | None = None
) -> Task[Any]:
    """Open a run folder: a `Task`, of the class that its recipe is for.

    Args:
        folder: One run folder, or several that answer together, joined by commas.
        device: Where the model goes.
        recipe: The recipe that it was trained with, where that holds settings from outside the
            package; by default, the folder's own.
    """
    folders = split_folders(folder)
    if len(folders) == 1:
        return load_one(folders[0], device, recipe=recipe)
    return assemble({path: load_one(path, device, recipe=recipe) for path in folders})


def load_one(
    folder: str | Path, device: str = "auto", *, recipe: BaseRecipe | None = None
) -> Task[Any]:
    """Open one run folder, where several would make no sense."""
    path = Path(folder)
    task = load_untrained(path, find_device(device), recipe=recipe)
    load_weights(task.model, path / WEIGHTS)
    return task


def load_as(kind: type[AnyTask], folder: str | Path, device: str = "auto") -> AnyTask:
    """Open a run folder whose task must be of a class; raise a `ConfigError` for any other.

    Args:
        kind: The class, such as `Predictor`.
        folder: As for `load`.
        device: Where the model goes.
    """
    task = load(folder, device)
    if not isinstance(task, kind):
        raise ConfigError(
            f"{folder} must be a run that opens as {kind.__name__}, but is one for the task "
            f"'{task.recipe.task}'."
        )
    return task


def predict(folder: str | Path, sources: Sequence[str], device: str = "auto") -> list[str]:
    """Open a run folder and return the best prediction for each source."""
    return load(folder, device).translate(sources)


def read_test_sources(folder: str | Path, task: Task[Any]) -> list[Any]:
    """Return the sources of the test set that is kept in a run folder."""
    columns = getattr(task.recipe.data, "columns", ())
    return [example.source for example in read_examples(Path(folder) / TEST, columns=columns)]


def load_untrained(
    folder: Path, device: torch.device, *, recipe: BaseRecipe | None = None
) -> Task[Any]:
    """Open a run folder with fresh weights, as it was before training."""
    saved = read_config(folder)["recipe"]
    recipe = recipe or to_recipe(saved)
    return task_class(recipe).open(recipe, folder, device=device)


def describe_making(device: torch.device) -> dict[str, Any]:
    """Say how a number comes about: command, versions, commit and hardware."""
    return {
        "command": " ".join([_program(), *sys.argv[1:]]),
        "regard": regard.__version__,
        "torch": torch.__version__,
        "commit": _commit(),
        "hardware": describe_hardware(device),
    }


def _program() -> str:
    """Return how a person starts what is running: our command, or a script that uses it."""
    script = sys.argv[0]
    is_script = script.endswith(".py") and Path(script).name != "__main__.py"
    return f"python {script}" if is_script else "regard"


def _commit() -> str:
    """Return the commit of the source tree the package runs from, or an empty string.

    A copy without its history, in a container or on a cluster, is told through REGARD_COMMIT.
    """
    if told := os.environ.get("REGARD_COMMIT"):
        return told
    folder = Path(regard.__file__).parent.parent
    if not (folder / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
