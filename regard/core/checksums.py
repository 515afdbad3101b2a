"""Checksums of the files of a folder, in a JSON file beside them that is written last."""

import hashlib
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.core.errors import CheckpointError
from regard.core.files import read_json, replacing, sha256, write_json

CHECKSUMS = "checksums.json"

SMALL = 1 << 24
"""Largest size of a file that is always compared completely: milliseconds."""

HEAD = 1 << 20
"""Number of bytes at the start of a larger file that are compared when it is opened."""

Entry = dict[str, Any]
"""Size and SHA-256 checksum of a file, and of its first `HEAD` bytes if it is not small."""


def add_checksums(folder: Path) -> None:
    """List the files of a folder that are not listed yet; hidden files are left out."""
    files = _read_list(folder)
    for path in sorted(folder.iterdir()):
        is_listed = path.name in files or path.name == CHECKSUMS or path.name.startswith(".")
        if path.is_file() and not is_listed:
            files[path.name] = [_describe(path)]
    _write_list(folder, files)


def forget_checksums(folder: Path, names: Collection[str]) -> None:
    """Remove files that will change from the list of a folder."""
    files = _read_list(folder)
    if files.keys() & set(names):
        _write_list(folder, {name: files[name] for name in files if name not in names})


@contextmanager
def replacing_listed(path: Path) -> Iterator[Path]:
    """Replace a file as `replacing` does, together with its checksum if its folder has a list.

    Until the file is replaced, the list holds the checksums of both the old file and the new one,
    so a killed process leaves no file without a valid checksum.
    """
    with replacing(path) as temporary:
        yield temporary
        files = _read_list(path.parent)
        if files:
            files[path.name] = [*files.get(path.name, []), _describe(temporary)]
            _write_list(path.parent, files)
    if files:
        files[path.name] = files[path.name][-1:]
        _write_list(path.parent, files)


def find_fault(path: Path, *, is_whole: bool = True) -> str:
    """Return how a file differs from its checksum; an empty string if it does not or is not listed.

    Args:
        path: The file.
        is_whole: Whether to read all of it; otherwise only its size and start if it is large.
    """
    return _find_fault(path, _read_list(path.parent).get(path.name, []), is_whole=is_whole)


def find_faults(folder: Path, *, is_whole: bool = True, ignored: Collection[str] = ()) -> list[str]:
    """Return how files of a folder differ from its list, such as "a.json is missing".

    Args:
        folder: The folder; one without a list, of an earlier version, has no faults.
        is_whole: Whether to read large files completely.
        ignored: Names of files that are not compared.
    """
    try:
        files = _read_list(folder)
    except CheckpointError as error:
        return [str(error).removesuffix(".")]
    return [
        f"{name} {fault}"
        for name, entries in files.items()
        if name not in ignored and (fault := _find_fault(folder / name, entries, is_whole=is_whole))
    ]


def check_files(folder: Path, *, is_whole: bool = True, ignored: Collection[str] = ()) -> None:
    """Raise `CheckpointError` if `find_faults` finds any."""
    if faults := find_faults(folder, is_whole=is_whole, ignored=ignored):
        raise CheckpointError(
            f"{folder} is damaged: {'; '.join(faults)}. Copy it again, or train again; to use a "
            f"file that you changed yourself, delete {folder / CHECKSUMS}."
        )


def _find_fault(path: Path, entries: list[Entry], *, is_whole: bool) -> str:
    if not entries:
        return ""
    try:
        status = path.stat()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return "is not a file"
    sizes = [entry["bytes"] for entry in entries]
    if status.st_size not in sizes:
        return f"has {status.st_size:,} bytes instead of {sizes[-1]:,}"
    is_whole = is_whole or status.st_size <= SMALL
    key, found = ("sha256", sha256(path)) if is_whole else ("head", _hash_head(path))
    # Another size may have no checksum of its start.
    return "" if found in [entry.get(key) for entry in entries] else "differs from its checksum"


def _describe(path: Path) -> Entry:
    size = path.stat().st_size
    entry: Entry = {"bytes": size, "sha256": sha256(path)}
    return entry if size <= SMALL else {**entry, "head": _hash_head(path)}


def _hash_head(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.sha256(file.read(HEAD)).hexdigest()


def _read_list(folder: Path) -> dict[str, list[Entry]]:
    """Return the entries by name of file; several while a file is replaced."""
    path = folder / CHECKSUMS
    if not path.exists():
        return {}
    files = read_json(path)
    is_valid = isinstance(files, dict) and all(
        Path(name).name == name and isinstance(entries, list) and all(map(_is_entry, entries))
        for name, entries in files.items()
    )
    if not is_valid:
        raise CheckpointError(
            f"{path} must list files of its folder with their checksums, but does not. "
            "The file is damaged."
        )
    return {name: list(entries) for name, entries in files.items()}


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(size := entry.get("bytes"), int)
        and isinstance(entry.get("sha256"), str)
        and (size <= SMALL or isinstance(entry.get("head"), str))
    )


def _write_list(folder: Path, files: dict[str, list[Entry]]) -> None:
    write_json(folder / CHECKSUMS, files)
