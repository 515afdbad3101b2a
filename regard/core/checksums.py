"""Checksums of the files of a folder, in a JSON file beside them that is written last."""

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.core.errors import CheckpointError
from regard.core.files import format_json, read_json, replacing, sha256, write_json
from regard.core.records import leads_out, listed, shown_name

CHECKSUMS = "checksums.json"

SMALL = 1 << 24
"""Largest size of a file that is always compared completely: milliseconds."""

HEAD = 1 << 20
"""Number of bytes at the start of a larger file that are compared when it is opened."""

RESTORE = (
    "Copy it again, or train again; to use a file that you changed yourself, delete "
    f"{CHECKSUMS} beside it."
)
"""Remedy for a damaged file, at the end of messages."""

Entry = dict[str, Any]
"""Size and SHA-256 checksum of a file, and of its first `HEAD` bytes if it is not small."""


def add_checksums(
    folder: Path, names: Iterable[str] | None = None, *, ignored: Collection[str] = ()
) -> None:
    """List files of a folder that are not listed yet.

    Args:
        folder: The folder.
        names: Names of the files; if not given, all but hidden ones and links out of the folder.
        ignored: Names of files that are not listed.
    """
    files = _read_list(folder)
    for name in sorted(_visible_files(folder) if names is None else names):
        if name not in files and name not in ignored:
            files[name] = [_describe(folder / name)]
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


def write_listed_text(path: Path, text: str) -> None:
    """Write a text file atomically, together with its checksum if its folder has a list."""
    with replacing_listed(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_listed_json(path: Path, value: Any) -> None:
    """Write JSON atomically, together with its checksum if its folder has a list."""
    write_listed_text(path, format_json(value))


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
        f"{shown_name(name)} {fault}"
        for name, entries in files.items()
        if name not in ignored and (fault := _find_fault(folder / name, entries, is_whole=is_whole))
    ]


def check_files(folder: Path, *, is_whole: bool = True, ignored: Collection[str] = ()) -> None:
    """Raise `CheckpointError` if `find_faults` finds any."""
    if faults := find_faults(folder, is_whole=is_whole, ignored=ignored):
        raise CheckpointError(f"{folder} is damaged: {listed(faults)}. {RESTORE}")


def check_file(path: Path) -> None:
    """Raise `CheckpointError` if a file is listed and differs; a missing one is for its reader.

    Large files are compared at their start only.
    """
    if path.exists() and (fault := find_fault(path, is_whole=False)):
        raise CheckpointError(f"{path.parent} is damaged: {path.name} {fault}. {RESTORE}")


def listed_files(folder: Path) -> list[Path]:
    """Return the files that the list of a folder names."""
    return [folder / name for name in _read_list(folder)]


def find_checksums(folder: Path, *, always: Iterable[str], ignored: Collection[str]) -> str:
    """Return one checksum for the files of a folder, from its list; without one, it is computed.

    Args:
        folder: The folder.
        always: Names of the files that also count if they are not listed.
        ignored: Names of files that do not count.
    """
    files = {
        name: entries[-1]["sha256"]
        for name, entries in _read_list(folder).items()
        if entries and name not in ignored
    }
    for name in always:
        if name not in files and (folder / name).exists():
            files[name] = sha256(folder / name)
    return hashlib.sha256(format_json(dict(sorted(files.items()))).encode()).hexdigest()


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
    if leads_out(path):
        return "is a link out of the folder"
    sizes = [entry["bytes"] for entry in entries]
    if status.st_size not in sizes:
        return f"has {status.st_size:,} bytes instead of {sizes[-1]:,}"
    has_heads = all("head" in entry for entry in entries)
    key, found = (
        ("head", _hash_head(path)) if has_heads and not is_whole else ("sha256", sha256(path))
    )
    return "" if found in [entry[key] for entry in entries] else "differs from its checksum"


def _visible_files(folder: Path) -> list[str]:
    names = [path.name for path in folder.iterdir() if path.is_file() and not leads_out(path)]
    return [name for name in names if name != CHECKSUMS and not name.startswith(".")]


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
    if not os.path.lexists(path):
        return {}
    if not path.is_file():
        raise CheckpointError(f"{path} must be a file, but is not. The folder is damaged.")
    files = read_json(path)
    is_valid = isinstance(files, dict) and all(
        _is_name(name) and isinstance(entries, list) and all(map(_is_entry, entries))
        for name, entries in files.items()
    )
    if not is_valid:
        raise CheckpointError(
            f"{path} must list files of its folder with their checksums, but does not. "
            "The file is damaged."
        )
    return {name: list(entries) for name, entries in files.items()}


def _is_name(name: str) -> bool:
    """Return whether a name is that of a file in the folder: not `..`, and without separators."""
    return Path(name).name == name != ".." and "\0" not in name


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("bytes"), int)
        and all(isinstance(entry.get(key, ""), str) for key in ("sha256", "head"))
        and "sha256" in entry
    )


def _write_list(folder: Path, files: dict[str, list[Entry]]) -> None:
    write_json(folder / CHECKSUMS, files)
