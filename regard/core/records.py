"""Files that someone else may have written: regular files of limited size, strict JSON, types."""

import json
import math
import os
import stat
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from regard.core.errors import CheckpointError

T = TypeVar("T")

MAX_JSON = 64 * 2**20
"""Maximum size of a JSON file, in bytes; parsed, it takes up to thirty times as much."""

MAX_JSON_LINES = 2**30
"""Maximum size of a file with one JSON value per line, such as a training log, in bytes."""

MAX_SHOWN = 80
"""Maximum number of characters of a value in a message."""

MAX_FAULTS = 8
"""Maximum number of faults in a message."""

_SPECIAL_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
"""Kinds of files from which reading could wait or run forever."""

TYPE_NAMES = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "an integer",
    list: "a list",
    str: "a string",
}
"""Types of JSON in messages."""

Finite = NewType("Finite", float)
"""A number that is neither NaN nor infinite, as a type for `check_record`."""

Texts = NewType("Texts", list[str])
"""One or more strings, as a type for `check_record`."""

_CONDITIONS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    Finite: ("a finite number", math.isfinite),
    Texts: ("a list of one or more strings", bool),
}
"""Types of values that fulfil a condition, with its name in messages."""


def shown(value: Any) -> str:
    """Return a value as it is written in a message: on one line, and shortened if it is long."""
    if isinstance(value, int) and value.bit_length() > 4 * MAX_SHOWN:
        return f"a number of {value.bit_length():,} bits"  # too long to be written
    text = repr(value[: 2 * MAX_SHOWN] if isinstance(value, str | bytes | list) else value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def shown_name(name: str) -> str:
    """Return a name as it is written in a message: unchanged if it is short and printable."""
    return name if name.isprintable() and len(name) <= MAX_SHOWN else shown(name)


def listed(faults: Sequence[str]) -> str:
    """Return the first faults for a message, and the number of the others."""
    more = f" and {len(faults) - MAX_FAULTS:,} more" if len(faults) > MAX_FAULTS else ""
    return "; ".join(faults[:MAX_FAULTS]) + more


def find_special_kind(path: str | Path) -> str:
    """Return what a path is if reading it could wait or run forever; empty for all others."""
    try:
        return _SPECIAL_KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "")
    except (OSError, ValueError):
        return ""


def check_run_file(path: Path, *, max_bytes: int | None = None) -> None:
    """Raise `CheckpointError` unless a file of a run folder is a regular file inside the folder.

    A pipe would block, a device has no end, and a link out of the folder would show or change a
    file of the user that the author of the folder cannot read.

    Args:
        path: The file.
        max_bytes: Maximum size; any if not given.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing. Is {path.parent} a run folder?") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        kind = find_special_kind(path) or "a folder"
        raise CheckpointError(f"{path} must be a file, but is {kind}. Copy the folder again.")
    if leads_out(path):
        raise CheckpointError(
            f"{path} must be a file of its folder, but is a link to {path.resolve()}. Replace the "
            "link by a copy of the file if you trust it."
        )
    if max_bytes is not None and found.st_size > max_bytes:
        raise CheckpointError(
            f"{path} must have at most {max_bytes:,} bytes, but has {found.st_size:,}."
        )


def leads_out(path: Path) -> bool:
    """Return whether a path is a link out of its folder, and of a Hugging Face cache."""
    if not path.is_symlink():
        return False
    folder, target = path.parent.resolve(), path.resolve()
    if folder.parent.name == "snapshots":
        folder = folder.parent.parent  # the files of a snapshot are links to those of the cache
    return not target.is_relative_to(folder)


def read_bytes(path: Path, *, max_bytes: int = MAX_JSON) -> bytes:
    """Return the content of a file that `check_run_file` accepts."""
    check_run_file(path, max_bytes=max_bytes)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None


def read_text(path: Path, *, max_bytes: int = MAX_JSON) -> str:
    """Return the text of a file in UTF-8 that `check_run_file` accepts."""
    try:
        return read_bytes(path, max_bytes=max_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(
            f"{path} is not valid UTF-8 ({error}). The file is damaged."
        ) from None


def parse_json(text: str, where: str) -> Any:
    """Parse JSON; raise `CheckpointError` if it is invalid, nested deeply or repeats a key.

    Args:
        text: The text.
        where: Name of the text in messages.
    """
    try:
        value = json.loads(text, object_pairs_hook=_distinct)
        check_encodable(value, text)
    except ValueError as error:
        raise CheckpointError(
            f"{where} is not valid JSON ({error}). The file is damaged."
        ) from None
    except RecursionError:
        raise CheckpointError(f"{where} is nested too deeply. The file is damaged.") from None
    return value


def check_encodable(value: Any, text: str) -> None:
    """Raise `ValueError` if a value has half a surrogate pair: it can be neither printed nor saved.

    Args:
        value: The value.
        text: The JSON that it was parsed from.
    """
    if "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in values if keys.count(key) > 1)
        raise ValueError(f"the key {shown(repeated)} is repeated")
    return values


def check_record(value: Any, kind: type[T], where: str) -> T:
    """Return a value; raise `CheckpointError` if it does not have the types of `kind`.

    Args:
        value: The value of a JSON file.
        kind: Such as `list[str]`, `Finite` or `Texts`. Keys that a `TypedDict` does not name may
            have any value; those that a dataclass does not name are faults.
        where: Name of the file in messages.
    """
    fault = _fault(value, kind, "")
    if fault:
        raise CheckpointError(f"{where} is not from a run: {fault}. The file is damaged.")
    checked: T = value
    return checked


def _fault(value: Any, kind: Any, path: str) -> str:
    """Return the first fault of a value, such as "`a.b` must be a string, but is 3"; else ''."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return ""
    if origin in (Union, types.UnionType):
        faults = [_fault(value, argument, path) for argument in arguments]
        return "" if "" in faults else faults[0]
    if kind in _CONDITIONS:
        what, is_fulfilled = _CONDITIONS[kind]
        fault = _fault(value, kind.__supertype__, path)
        return fault or ("" if is_fulfilled(value) else _must(path, what, value))
    if is_typeddict(kind) or is_dataclass(kind):
        return _fault_of_table(value, kind, path)
    if origin is tuple:
        return _fault_of_tuple(value, arguments, path)
    return _fault_of_builtin(value, kind, path)


def _fault_of_builtin(value: Any, kind: Any, path: str) -> str:
    """Return the first fault of a value of a built-in type, such as `int` or `list[str]`."""
    plain, arguments = get_origin(kind) or kind, get_args(kind)
    if plain is type(None):
        return "" if value is None else _must(path, "null", value)
    allowed = (int, float) if plain is float else plain
    if not isinstance(value, allowed) or (isinstance(value, bool) and plain is not bool):
        return _must(path, TYPE_NAMES[plain], value)
    if plain is float and abs(value) > sys.float_info.max and isinstance(value, int):
        return _must(path, "a number within ±1.8e308", value)  # every calculation would overflow
    inner: Iterator[str] = iter(())
    if isinstance(value, list) and arguments:
        inner = (_fault(item, arguments[0], f"{path}[{i}]") for i, item in enumerate(value))
    elif isinstance(value, dict) and arguments:
        inner = (_fault(item, arguments[1], _join(path, key)) for key, item in value.items())
    return next(filter(None, inner), "")


def _fault_of_tuple(value: Any, kinds: tuple[Any, ...], path: str) -> str:
    if not isinstance(value, list) or len(value) != len(kinds):
        return _must(path, f"a list of {len(kinds)} values", value)
    pairs = enumerate(zip(value, kinds, strict=True))
    return next(filter(None, (_fault(item, kind, f"{path}[{i}]") for i, (item, kind) in pairs)), "")


def _fault_of_table(value: Any, kind: Any, path: str) -> str:
    if not isinstance(value, dict):
        return _must(path, TYPE_NAMES[dict], value)
    is_open = is_typeddict(kind)
    hints = get_type_hints(kind)
    required = kind.__required_keys__ if is_open else _required_fields(kind)
    for name, inner in hints.items():
        if name in value:
            fault = _fault(value[name], inner, _join(path, name))
            if fault:
                return fault
        elif name in required:
            return f"`{_join(path, name)}` is missing"
    unknown = [] if is_open else [name for name in value if name not in hints]
    return f"`{_join(path, unknown[0])}` is unknown" if unknown else ""


def _required_fields(kind: Any) -> set[str]:
    return {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }


def _join(path: str, name: str) -> str:
    return f"{path}.{shown_name(name)}" if path else shown_name(name)


def _must(path: str, what: str, value: Any) -> str:
    return f"{f'`{path}`' if path else 'it'} must be {what}, but is {shown(value)}"
