"""Data of a run, read again from its files or its built-in data set."""

from pathlib import Path
from typing import Any

from regard.core.errors import CheckpointError
from regard.data.splits import Splits
from regard.data.text.lines import STANDARD_INPUT
from regard.runs.fingerprint import has_fingerprint
from regard.runs.saved.config import read_config
from regard.tasks.base import Task


def read_run_data(folder: Path, task: Task[Any]) -> Splits:
    """Read the training, validation and test data of a run again.

    Args:
        folder: The run folder.
        task: The run itself.
    """
    about = read_config(folder)["about"]
    if not about.get("data"):
        raise CheckpointError(f"{folder} was not trained here, so its training data is not known.")
    if STANDARD_INPUT in about["data"]:
        raise CheckpointError(f"{folder} was trained on standard input, which is read once.")
    # Older runs do not list validation and test data; a different split fails the check below.
    data, valid, test = (tuple(about.get(side, ())) for side in ("data", "valid", "test"))
    splits = task.read(data, valid, test, config=task.recipe.data)
    if not has_fingerprint(splits, about["data_fingerprint"]):
        raise CheckpointError(
            f"{' '.join(data)} has changed since {folder} was trained on it. "
            "Restore the data, or train again."
        )
    return splits
