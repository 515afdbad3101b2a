"""Atomic file writes, JSON, JSON lines, checksums, the limit of open files."""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.records import (
    MAX_JSON_LINES,
    check_encodable,
    check_record,
    check_run_file,
    find_special_kind,
    parse_json,
    read_bytes,
    read_text,
)

T = TypeVar("T")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block ends without an error.

    The replacement is atomic: readers get the old file or the new one. A full disk, a killed
    process or a power failure leaves the old file unchanged. Devices and pipes are refused.
    """
    if kind := find_irreplaceable_kind(path):
        raise DataError(f"{path} must be a file, but is {kind}. Name another file.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        # mkstemp creates private files; restore the default permissions.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DataError(
                f"{path} could not be written: the disk is full. Free some space; "
                "the old file is unchanged."
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part"))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        old = temporary.with_suffix(".old")
        if path.exists():
            path.rename(old)
        temporary.rename(path)
        sync_folder(path.parent)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def find_irreplaceable_kind(path: Path) -> str:
    """Return what a path is if no file must replace it; empty for all others."""
    if kind := find_special_kind(path):
        return kind
    # Such as /dev/stdout, which leads to a file if the output is redirected.
    top = Path(os.path.abspath(path)).parts[1:3]
    is_of_system = top[:1] in (("dev",), ("proc",)) and top != ("dev", "shm")
    return "a link of the system" if is_of_system and path.is_symlink() else ""


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, so that a replaced file survives a power failure."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # Windows cannot open folders.
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems
            raise
    finally:
        os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of processes that were killed; no other process may write there."""
    for path in folder.glob(".*.part"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


def check_suffix(path: Path, name: str, *suffixes: str) -> str:
    """Return the suffix of a file in lower case; raise `ConfigError` unless it is an allowed one.

    Args:
        path: The file.
        name: The command-line option of the file.
        suffixes: Allowed suffixes, such as `.png`.
    """
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        known = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise ConfigError(f"`{name}` must end in {known}, but is '{path}'.")
    return suffix


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    write_text(path, format_json(value))


def format_json(value: Any) -> str:
    """Return JSON, indented, with a final newline."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_json(path: Path) -> Any:
    """Read a JSON file of a run folder. Raise `CheckpointError` if it is missing or damaged."""
    return parse_json(read_text(path), str(path))


def read_record(path: Path, kind: type[T]) -> T:
    """Read a JSON file of a run folder whose values must have the types of `kind`.

    Args:
        path: The file.
        kind: A `TypedDict`, or a type such as `list[str]`.
    """
    return check_record(read_json(path), kind, str(path))


def append_json_line(path: Path, value: Any) -> None:
    """Append one line to a JSON-lines file."""
    if os.path.lexists(path):
        check_run_file(path)
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
    except OSError as error:
        error.filename = str(path)  # An error of writing, such as a full disk, names no file.
        raise


def read_json_lines(path: Path) -> list[Any]:
    """Read a JSON-lines file. An incomplete last line, left by a killed process, is skipped."""
    if not os.path.lexists(path):
        return []
    # Bytes, because the last line may end inside a character, and because `str.splitlines` also
    # splits at characters that are allowed in JSON strings.
    lines = read_bytes(path, max_bytes=MAX_JSON_LINES).removesuffix(b"\n").split(b"\n")
    values: list[Any] = []
    for number, line in enumerate(lines, start=1):
        try:
            values.append(json.loads(line))
            check_encodable(values[-1], line.decode())
        except (ValueError, RecursionError):
            if number < len(lines):
                raise CheckpointError(f"{path}, line {number}, is not valid JSON.") from None
    return values


def sha256(path: Path) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def check_regular(path: str | Path) -> None:
    """Raise `DataError` for a pipe, a device or a socket, without opening it."""
    if kind := find_special_kind(path):
        raise DataError(
            f"{path} is {kind}, but must be a file: data may be read several times. Save it to a "
            "file first, or give `-` for standard input where a command reads it."
        )


def allow_open_files() -> None:
    """Raise the limit of open files as far as the system allows; each connection is one."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit.
        resource: Any = import_module("resource")
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
