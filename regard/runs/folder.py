"""Run folders: settings, vocabularies, weights and results of a run, loaded without pickle."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar, overload

import torch

from regard.core.checksums import (
    CHECKSUMS,
    RESTORE,
    add_checksums,
    check_file,
    check_files,
    find_faults,
    forget_checksums,
    listed_files,
    write_listed_json,
)
from regard.core.config import to_dict
from regard.core.device import find_device
from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import read_json_lines, read_record, write_json
from regard.core.records import (
    MAX_JSON,
    MAX_JSON_LINES,
    Finite,
    Texts,
    check_record,
    check_run_file,
    listed,
)
from regard.core.tensor_files import open_tensors
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.runs.ensemble import build_ensemble, split_folders
from regard.runs.provenance import command_line
from regard.runs.saved.config import CONFIG, FORMAT, read_config
from regard.runs.saved.precision import PRECISION, attach_finder
from regard.tasks.base import Task
from regard.tasks.evaluation import EvaluationRecord, check_groups
from regard.tasks.recipe import BaseRecipe
from regard.tasks.table import task_class, to_recipe
from regard.training.checkpoint import (
    FORMAT_VERSION,
    PREVIOUS,
    RESUME,
    STATES,
    remove_training,
)

AnyTask = TypeVar("AnyTask", bound=Task[Any])

MAX_BYTES = {".json": MAX_JSON, ".jsonl": MAX_JSON_LINES}
"""Maximum sizes of files of a run, by suffix."""

WEIGHTS = "model.safetensors"
METRICS = "metrics.json"
TRAINING_LOG = "journal.jsonl"
SAMPLES = "samples.jsonl"
TEST = "test.jsonl"
PREDICTIONS = "predictions.json"
REPORT = "report.html"
TENSORBOARD = "tensorboard"
AVERAGES = "averages"

LOGS = (TRAINING_LOG, SAMPLES)
"""Files that grow during training."""

RESULTS = (METRICS, PREDICTIONS, REPORT, PRECISION)
"""Files written at the end of training or later."""


class _Row(TypedDict):
    """Row of the test set."""

    source: str | Texts
    target: str | Texts
    alignment: NotRequired[list[tuple[int, int]] | None]
    tags: NotRequired[list[str]]


class _Training(TypedDict):
    seconds: Finite
    tokens_per_second: Finite


class _Metrics(TypedDict):
    """Content of `metrics.json`, as far as it is used again."""

    command: str
    commit: str
    hardware: str
    regard: str
    torch: str
    seed: int
    parameters: int
    training: _Training
    test: EvaluationRecord


def initialize_folder(
    folder: Path, task: Task[Any], about: dict[str, Any], *, test: Sequence[Example] = ()
) -> None:
    """Write everything but weights: settings, vocabularies, provenance and test set.

    All files of an earlier run are deleted first, beginning with its settings: a folder without
    settings is not a run, so a process that is killed here leaves no mixture of two runs.

    Args:
        folder: The run folder.
        task: The run.
        about: Its provenance.
        test: Its test set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in (CONFIG, CHECKSUMS, WEIGHTS, *LOGS, *RESULTS):
        (folder / name).unlink(missing_ok=True)
    remove_training(folder)
    for name in (TENSORBOARD, AVERAGES):
        shutil.rmtree(folder / name, ignore_errors=True)
    before = _identify_files(folder)
    task.save(folder)
    write_examples(folder / TEST, test)
    write_json(folder / CONFIG, {"format": FORMAT, "recipe": to_dict(task.recipe), "about": about})
    # Files of the user, which may be in the folder too, may change.
    add_checksums(folder, [name for name, _ in _identify_files(folder) - before])


def _identify_files(folder: Path) -> set[tuple[str, int]]:
    """Return names and inodes: a file that is written again has another inode."""
    return {(path.name, path.stat().st_ino) for path in folder.iterdir() if path.is_file()}


def prepare_to_resume(folder: Path) -> None:
    """Check all files that a resumed training needs, and prepare for changes of the others."""
    if not listed_files(folder):  # of an earlier version, or of someone else
        _check_sizes(folder)
        add_checksums(folder, ignored=() if _is_readable(folder / WEIGHTS) else [WEIGHTS])
    check_files(folder, ignored=(WEIGHTS, *RESULTS))
    # The weights will change, so the precision is measured again.
    (folder / PRECISION).unlink(missing_ok=True)
    forget_checksums(folder, [*LOGS, PRECISION])


def _check_sizes(folder: Path) -> None:
    """Raise `CheckpointError` for files that are too large to be read for their checksums."""
    for path in sorted(folder.iterdir()):
        if path.suffix in MAX_BYTES and path.is_file():
            check_run_file(path, max_bytes=MAX_BYTES[path.suffix])


def _is_readable(weights: Path) -> bool:
    """Return whether a file of weights has the size that its header implies."""
    try:
        with open_tensors(weights, max_version=FORMAT_VERSION):
            return True
    except CheckpointError:
        return False


def check_links(folder: Path) -> None:
    """Raise `CheckpointError` if a folder that training writes to is a link to another one."""
    for path in (folder / name for name in (AVERAGES, TENSORBOARD, *STATES)):
        if path.is_symlink():
            raise CheckpointError(
                f"{path} must be a folder of the run, but is a link to {path.readlink()}. Replace "
                "the link by a copy of the folder if you trust it."
            )


def record_changes(folder: Path, recipe: BaseRecipe, *, step: int) -> None:
    """Write the recipe of a resumed training, and which settings changed after which step."""
    config = read_config(folder)
    saved, now = config["recipe"], to_dict(recipe)
    with suppress(ConfigError):  # of a recipe from outside the package
        saved = to_dict(to_recipe(saved))  # with settings that later versions have added
    if settings := _changed_settings(saved, now):
        change = {"step": step, "command": command_line(), "settings": settings}
        about = {**config["about"], "changes": [*config["about"].get("changes", []), change]}
        write_listed_json(folder / CONFIG, {**config, "recipe": now, "about": about})


def _changed_settings(
    before: dict[str, Any], after: dict[str, Any], prefix: str = ""
) -> dict[str, list[Any]]:
    """Return the old and the new value of each setting that differs; None if there is none."""
    changes: dict[str, list[Any]] = {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            changes |= _changed_settings(old, new, f"{prefix}{name}.")
        elif old != new:
            changes[prefix + name] = [old, new]
    return changes


def complete_folder(folder: Path) -> None:
    """Add checksums at the end of training; raise if files were deleted or changed meanwhile."""
    faults = find_faults(folder, is_whole=False)
    if not (folder / CHECKSUMS).exists():
        faults = [f"{CHECKSUMS} is missing"]
    if faults:
        raise CheckpointError(
            f"{folder} was changed by another program during training: {listed(faults)}. "
            "Train again."
        )
    add_checksums(folder, [name for name in LOGS if (folder / name).exists()])


def check_folder(folder: Path) -> list[Path]:
    """Compare all files of a run with their checksums; raise `CheckpointError` if any differ.

    Returns:
        The files compared.
    """
    folders = [folder, *(folder / name for name in (RESUME, PREVIOUS, AVERAGES))]
    files = {part: listed_files(part) for part in folders}
    if not files[folder]:
        read_config(folder)  # names what is not a run
        raise CheckpointError(
            f"{folder} has no {CHECKSUMS}, so its files cannot be checked. Training writes it; "
            "versions before 0.3 did not."
        )
    faults = [f"{part}: {fault}" for part in folders for fault in find_faults(part)]
    if faults:
        raise CheckpointError(f"{folder} is damaged. {listed(faults)}. {RESTORE}")
    return [path for paths in files.values() for path in paths]


def read_metrics(folder: Path) -> dict[str, Any]:
    """Read provenance, training cost and scores of a finished run."""
    metrics: Any = read_record(folder / METRICS, _Metrics)
    check_groups(metrics["test"], str(folder / METRICS))
    return dict(metrics)


def load(
    folder: str | Path, device: str = "auto", *, recipe: BaseRecipe | None = None
) -> Task[Any]:
    """Load a run folder as a `Task` of the class that its recipe names.

    Args:
        folder: A run folder, or several joined by commas (an ensemble).
        device: Device of the model.
        recipe: Recipe of the training, needed if it holds settings from outside the package; the
            folder's recipe if not given.
    """
    folders = split_folders(folder)
    if len(folders) == 1:
        return load_one(folders[0], device, recipe=recipe)
    return build_ensemble({path: load_one(path, device, recipe=recipe) for path in folders})


def load_one(
    folder: str | Path, device: str = "auto", *, recipe: BaseRecipe | None = None
) -> Task[Any]:
    """Load a single run folder; ensembles are not supported."""
    path = Path(folder)
    # Opening checks the weights; results may be deleted.
    check_files(path, is_whole=False, ignored=(WEIGHTS, TEST, *LOGS, *RESULTS))
    recipe = recipe or to_recipe(read_config(path)["recipe"])
    kind = task_class(recipe)
    task = kind.open(recipe, path, weights=path / WEIGHTS, device=find_device(device))
    attach_finder(task, path / WEIGHTS)
    return task


def load_as(kind: type[AnyTask], folder: str | Path, device: str = "auto") -> AnyTask:
    """Load a run folder whose task must be of a class; raise a `ConfigError` for any other.

    Args:
        kind: The class, such as `Predictor`.
        folder: As for `load`.
        device: Device of the model.
    """
    task = load(folder, device)
    if not isinstance(task, kind):
        raise ConfigError(
            f"{folder} must be a run that loads as {kind.__name__}, but is one for the task "
            f"'{task.recipe.task}'."
        )
    return task


@overload
def predict(folder: str | Path, sources: str, device: str = "auto") -> str: ...


@overload
def predict(folder: str | Path, sources: Sequence[Any], device: str = "auto") -> list[str]: ...


def predict(folder: str | Path, sources: Sequence[Any], device: str = "auto") -> str | list[str]:
    """Load a run folder and return the best prediction for each source, or for a single string."""
    return load(folder, device).translate(sources)


def read_test_set(folder: str | Path) -> list[Example]:
    """Return the test set that training stored in a run folder.

    Raise `CheckpointError` if there is none.

    Args:
        folder: A run folder, or several joined by commas, which must have the same test set.
    """
    first, *others = split_folders(folder)
    rows = _read_test_rows(first)
    for other in others:
        if _read_test_rows(other) != rows:
            raise CheckpointError(
                f"{first} and {other} have different test sets. Name a data set or a file of pairs "
                "after the run."
            )
    return [_to_example(row) for row in rows]


def _read_test_rows(folder: Path) -> list[dict[str, Any]]:
    read_config(folder)
    check_file(folder / TEST)
    rows: list[dict[str, Any]] = read_json_lines(folder / TEST)
    check_record(rows, list[_Row], str(folder / TEST))
    if not rows:
        raise CheckpointError(
            f"{folder} holds no test set: {TEST} is missing or empty. Name a data set or a file of "
            "pairs after the run."
        )
    return rows


def _to_example(row: dict[str, Any]) -> Example:
    """Return the example of a row of `TEST`, exactly as it was written."""
    target, *references = row["target"] if isinstance(row["target"], list) else [row["target"]]
    source, alignment = row["source"], row.get("alignment")
    return Example(
        source=tuple(source) if isinstance(source, list) else source,
        target=target,
        references=tuple(references),
        alignment=None if alignment is None else tuple((i, j) for i, j in alignment),
        tags=tuple(row.get("tags", ())),
    )


def load_untrained(
    folder: Path, device: torch.device, *, recipe: BaseRecipe | None = None
) -> Task[Any]:
    """Load a run folder with newly initialised weights, as before training.

    Raise `CheckpointError` if saved weights do not fit the settings.
    """
    recipe = recipe or to_recipe(read_config(folder)["recipe"])
    paths = [folder / WEIGHTS, *sorted(folder.glob(f"resume*/{WEIGHTS}"))]
    saved = [path for path in paths if path.exists()]
    # A damaged file is for its reader, unless there is no other to compare the settings with.
    checks = [path for path in saved if _is_readable(path)] or saved
    return task_class(recipe).open_untrained(recipe, folder, checks=checks, device=device)
