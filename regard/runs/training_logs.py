"""Training logs of several runs, for plots."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from regard.core.errors import CheckpointError
from regard.plots.training import training_curves
from regard.runs.folder import TRAINING_LOG
from regard.training.loggers.display import spell_metric
from regard.training.logs import read_log
from regard.training.plan import Row


def plot_runs(folders: Sequence[Path], *, x: str = "step") -> Figure:
    """Plot the training curves of runs, also of those that are not finished.

    Args:
        folders: The run folders.
        x: Field of the training log for the x axis: `step` or `seconds`.
    """
    logs = {name: read_training_log(folder) for name, folder in _names(folders).items()}
    validations = [row for rows in logs.values() for row in rows if row["kind"] == "valid"]
    # Rows of older versions do not name their metric.
    metrics = dict.fromkeys(row.get("metric", "value") for row in validations)
    scores = {name: f"Validation {spell_metric(name)}" for name in metrics if name != "loss"}
    return training_curves(logs, scores=scores, x=x)


def read_training_log(folder: Path) -> list[Row]:
    """Read the training log of a run; raise `CheckpointError` if it has none or an empty one."""
    if not (folder / TRAINING_LOG).is_file():
        raise CheckpointError(
            f"{folder} has no {TRAINING_LOG}. Give a run folder made by `regard train`."
        )
    rows = read_log(folder / TRAINING_LOG)
    if not any(row["kind"] in ("train", "valid") for row in rows):
        raise CheckpointError(
            f"{folder / TRAINING_LOG} has no row yet. Training writes one every `train.log_every` "
            "steps and at each validation."
        )
    return rows


def _names(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the folders, each once, by their names, or by their paths if names are equal."""
    unique = list({folder.resolve(): folder for folder in folders}.values())
    names = [folder.resolve().name for folder in unique]
    is_distinct = len({*names}) == len(names)
    return dict(zip(names if is_distinct else map(str, unique), unique, strict=True))
