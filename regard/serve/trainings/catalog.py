"""All trainings that a server follows, by name."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from regard.core.errors import ConfigError
from regard.runs.folder import TRAINING_LOG
from regard.runs.lock import LOCK
from regard.runs.saved.config import CONFIG
from regard.serve.errors import RequestError
from regard.serve.trainings.training import Training

MAX_DEPTH = 4
"""Maximum number of folders between a folder of runs and a run."""

MAX_FOLDERS = 10_000
"""Maximum number of folders that are searched for runs."""

MAX_RUNS = 1_000
"""Maximum number of trainings."""

SCAN_SECONDS = 2.0
"""Minimum time between two searches for runs."""


class Trainings:
    """Trainings by name: those of given runs, and all in given folders, also later ones.

    No name is ever the path of a file: requests can only name what a search has found.

    Args:
        runs: Run folders by name; those without a training log, such as imported models, are left
            out.
        folders: Run folders, or folders of runs, whose names are those of their paths.
    """

    def __init__(
        self, runs: Mapping[str, Path] | None = None, folders: Iterable[Path] = ()
    ) -> None:
        self._known = {
            name: Training(name, folder)
            for name, folder in (runs or {}).items()
            if folder.is_dir() and is_run(os.listdir(folder))
        }
        self._roots = _name_roots(folders)
        self._due = 0.0
        self._lock = Lock()

    def all(self) -> list[Training]:
        """Return all trainings that exist now, by name."""
        with self._lock:
            self._search()
            found = [one for one in self._known.values() if one.folder.is_dir()]
            return sorted(found, key=lambda one: one.name)

    def find(self, name: str) -> Training:
        """Return a training by its name."""
        found = next((one for one in self.all() if one.name == name), None)
        if found is None:
            raise RequestError(
                404, f"There is no training '{name[:100]}'. `/v1/trainings` lists all of them."
            )
        return found

    def describe(self) -> list[dict[str, Any]]:
        """Return the progress of each training."""
        return [one.describe() for one in self.all()]

    def _search(self) -> None:
        """Find runs that are new, unless the last search was a moment ago."""
        if time.monotonic() < self._due:
            return
        for prefix, root in self._roots.items():
            for folder in find_runs(root):
                inner = folder.relative_to(root).as_posix()
                parts = [part for part in (prefix, inner) if part not in ("", ".")]
                name = "/".join(parts) or folder.resolve().name
                if name not in self._known and len(self._known) < MAX_RUNS:
                    self._known[name] = Training(name, folder)
        self._due = time.monotonic() + SCAN_SECONDS


def find_runs(root: Path) -> Iterator[Path]:
    """Yield the run folders in a folder, or the folder itself if it is one.

    Links are not followed, and hidden folders are not searched.
    """
    num_folders = 0
    for path, names, files in os.walk(root):
        folder = Path(path)
        num_folders += 1
        if is_run(files):
            names.clear()
            yield folder
        if num_folders >= MAX_FOLDERS or len(folder.relative_to(root).parts) >= MAX_DEPTH:
            names.clear()
        names[:] = sorted(name for name in names if not name.startswith("."))


def is_run(files: Iterable[str]) -> bool:
    """Return whether the files of a folder are those of a run that is, was or will be trained."""
    names = {*files}
    return CONFIG in names and (TRAINING_LOG in names or LOCK in names)


def check_roots(folders: Iterable[Path]) -> None:
    """Raise `ConfigError` if a folder does not exist."""
    for folder in folders:
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise ConfigError(
                f"{folder} {what}. Give run folders, or a folder in which there are or will be "
                "runs."
            )


def _name_roots(folders: Iterable[Path]) -> dict[str, Path]:
    """Return folders by the beginning of the names of their runs."""
    unique = list({folder.resolve(): folder for folder in folders}.values())
    if len(unique) == 1:
        return {"": unique[0]}
    names = [folder.resolve().name for folder in unique]
    is_distinct = len({*names}) == len(names)
    return dict(zip(names if is_distinct else map(str, unique), unique, strict=True))
