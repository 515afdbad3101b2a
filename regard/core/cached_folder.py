"""Folders of files that are computed once, kept in the cache and verified at every use."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regard.core.errors import CheckpointError, DataError
from regard.core.files import read_json, sha256, write_json

_INDEX = "index.json"
"""File with the SHA-256 checksums of the other files of a folder."""
MAX_IDLE_SECONDS = 24 * 3600
"""Age of the last change from which an unfinished folder counts as abandoned."""
_PART = ".part"
"""Suffix of unfinished folders."""
NUM_ATTEMPTS = 3
"""Attempts to replace a damaged folder that other processes replace at the same time."""


def cache_folder() -> Path:
    """Return the folder of all cached files: `REGARD_CACHE`, or `~/.cache/regard` if not set."""
    folder = os.environ.get("REGARD_CACHE")
    return Path(folder) if folder else Path.home() / ".cache" / "regard"


@dataclass(frozen=True)
class CachedFolder:
    """A complete folder of the cache."""

    path: Path
    """The folder."""
    checksums: dict[str, str]
    """SHA-256 checksum of each file, by name."""


def find_or_build(path: Path, build: Callable[[Path], None]) -> CachedFolder:
    """Return a folder of the cache; build it if it is missing, incomplete or damaged.

    The folder is built under a temporary name and then renamed, so that a folder with its name is
    complete. Processes that build the same folder at the same time do not disturb each other: the
    first one to finish provides it.

    Args:
        path: The folder, whose name identifies its contents.
        build: Function that writes the files into a given empty folder.
    """
    if found := _verify(path):
        return found
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        with tempfile.TemporaryDirectory(
            dir=path.parent, prefix=f".{path.name}.", suffix=_PART, ignore_cleanup_errors=True
        ) as temporary:
            built = Path(temporary, "built")
            built.mkdir()
            build(built)
            checksums = {file.name: sha256(file) for file in sorted(built.iterdir())}
            write_json(built / _INDEX, checksums)
            return _install(CachedFolder(built, checksums), path)
    except OSError as error:
        raise DataError(
            f"{path} could not be written: {error.strerror}. Set REGARD_CACHE to another folder."
        ) from None


def _remove_abandoned(path: Path) -> None:
    """Remove unfinished folders that killed processes left behind long ago."""
    for part in path.parent.glob(f".{path.name}.*{_PART}"):
        with suppress(OSError):  # Its process may just have finished it.
            last = max(file.stat().st_mtime for file in (part, *part.rglob("*")))
            if time.time() - last > MAX_IDLE_SECONDS:
                shutil.rmtree(part)


def _install(built: CachedFolder, path: Path) -> CachedFolder:
    """Rename a new folder to `path`, unless another process has provided it meanwhile."""
    for attempt in range(NUM_ATTEMPTS):
        try:
            built.path.rename(path)
            return CachedFolder(path, built.checksums)
        except OSError:  # A folder with files is not replaced.
            if found := _verify(path):
                return found
        # A damaged folder is moved away in one step: another process may replace it, too.
        with suppress(FileNotFoundError):
            path.rename(built.path.parent / f"damaged-{attempt}")
    built.path.rename(path)
    return CachedFolder(path, built.checksums)


def _verify(path: Path) -> CachedFolder | None:
    """Return a folder whose files all have their checksums; None if there is none."""
    try:
        checksums: dict[str, str] = read_json(path / _INDEX)
        if all(sha256(path / name) == checksum for name, checksum in checksums.items()):
            return CachedFolder(path, checksums)
    except (OSError, CheckpointError):
        pass
    return None
