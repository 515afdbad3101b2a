"""Damaged and hostile folders, and commands that open them in a process with little memory."""

import copy
import json
import os
import select
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

WORKER = Path(__file__).with_name("command_worker.py")
MAX_SECONDS = 60
"""Time after which a command counts as hanging."""

DEPTH = 100_000


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command."""

    code: int
    """Exit code; -1 if the process died or had to be ended."""
    err: str
    """Standard error, or what happened to the process."""
    traceback: str = ""
    """Traceback of an unexpected error."""

    @property
    def fault(self):
        """Fault of the outcome; empty if it is a success, or a message with code 2."""
        if self.traceback or self.code not in (0, 2):
            return f"code {self.code}: {self.traceback or self.err}"
        *_, last = self.err.splitlines() or [""]
        is_message = last.startswith("regard: ") and last.endswith((".", "?"))
        return "" if self.code == 0 or is_message else f"no message, but: {self.err[-500:]}"


class Commands:
    """Runs commands in a worker process, which is replaced if it dies or hangs."""

    def __init__(self):
        self._process = None

    def __call__(self, *arguments):
        if self._process is None:
            self._start()
        self._process.stdin.write(json.dumps([str(one) for one in arguments]) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], MAX_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if line:
            return Outcome(**json.loads(line))
        what = "died with code" if ready else "hangs; ended with"
        code = self.close()
        return Outcome(-1, f"the process {what} {code}")

    def _start(self):
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(WORKER.parents[2])},
        )
        # Imports do not count as time of the first command.
        assert self._process.stdout.readline() == "ready\n"

    def close(self):
        if self._process is None:
            return 0
        self._process.kill()
        code = self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process = None
        return code


def _replaced(make):
    def damage(path):
        path.unlink()
        make(path)

    return damage


def _written(data):
    return lambda path: path.write_bytes(data)


def _made_sparse(path):
    with path.open("r+b") as file:
        file.truncate(64 * 2**30)


def _linked_out(path):
    outside = path.parent.parent / f"outside-{path.name}"
    shutil.move(path, outside)
    path.symlink_to(outside)


FILE_DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": _written(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "zeros inside": lambda path: path.write_bytes(
        path.read_bytes()[:40] + bytes(40) + path.read_bytes()[80:]
    ),
    "random": lambda path: path.write_bytes(bytes(range(1, 256)) * 20),
    "not UTF-8": lambda path: path.write_bytes(path.read_bytes().replace(b'"', b'"\xff', 1)),
    "folder": _replaced(lambda path: path.mkdir()),
    "pipe": _replaced(os.mkfifo),
    "device": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "link out": _linked_out,
    "link to nothing": _replaced(lambda path: path.symlink_to("nothing")),
    "link to itself": _replaced(lambda path: path.symlink_to(path.name)),
    "enormous": _made_sparse,
}
"""Damages of any file, in place."""

JSON_DAMAGES = {
    "list": _written(b"[]"),
    "object": _written(b"{}"),
    "number": _written(b"3"),
    "text": _written(b'"text"'),
    "null": _written(b"null"),
    "deep list": _written(b"[" * DEPTH + b"]" * DEPTH),
    "deep object": _written(b'{"a":' * DEPTH + b"1" + b"}" * DEPTH),
    "long number": _written(b"1" * 10_000),
    "large number": _written(b"1" + b"0" * 4_000),
    "NaN": _written(b"NaN"),
    "infinity": _written(b"1e999"),
    "half a surrogate": _written(b'"\\ud800"'),
    "many lists": _written(b"[" + b"[]," * 200_000 + b"[]]"),
    "list of all": _written(b'[null, true, "a", {}, [], -1, 1e300]'),
    "repeated key": lambda path: path.write_bytes(b'{"a": 1, "a": 2}'),
}
"""Damages of JSON files."""

VALUES = (
    None, True, False, -1, 0, 1, 3, 10**9, 10**18, 10**30, -(2**63), 0.5, -0.5, 1e-300, 1e300,
    float("nan"), float("inf"), "", "a", "a\nb\x1b[31m", "\ud800", "x" * 100_000, [], [1], ["a"],
    [[]], {}, {"a": 1}, {"kind": "a"}, {"": None}, [10**12] * 3, list(range(1000)),
)  # fmt: skip
"""Values that a setting may be replaced by."""


def leaves(value, path=()):
    """Yield the paths of all values inside of a JSON value, and of the value itself."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 3)):
            yield from leaves(value[index], (*path, index))


def changed(value, path, new):
    """Return a JSON value with another value at a path."""
    if not path:
        return new
    whole = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return whole


def without(value, path):
    """Return a JSON value without the entry at a path."""
    whole = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return whole


def extended(value, path, key):
    """Return a JSON value with one more entry in the object at a path, if there is an object."""
    whole = inner = copy.deepcopy(value)
    for one in path:
        inner = inner[one]
    if isinstance(inner, dict):
        inner[key] = 1
    return whole


def read_header(path):
    """Return the header of a safetensors file, and its data."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def write_header(path, header, data):
    """Write a safetensors file."""
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_json(path, value):
    """Write a JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")


def read_json(path):
    """Return a JSON file, or the lines of a file of JSON lines, as one value."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))


def write_value(name, value):
    """Return a function that writes a JSON value to a file of a folder."""

    def change(folder):
        if name.endswith(".jsonl") and isinstance(value, list):
            lines = "".join(json.dumps(row) + "\n" for row in value)
            (folder / name).write_text(lines, encoding="utf-8")
        else:
            write_json(folder / name, value)

    return change


def collect(cases, attempt, altered, names):
    """Return what is wrong with the outcomes of commands on folders, by case."""
    found = {}
    for label, change in cases:
        for name in names:
            if fault := attempt(name, altered(change)):
                found[label, name] = fault[-800:]
    return found


def damages_of(name, *, is_json):
    """Return functions that damage a file of a folder, each with its label."""
    damages = {**FILE_DAMAGES, **JSON_DAMAGES} if is_json else FILE_DAMAGES
    return [
        (label, lambda folder, damage=damage: damage(folder / name))
        for label, damage in damages.items()
    ]


def changes_of(name, value, limit=10**9):
    """Return changes of a file: every value inside replaced by each other value, and removed."""
    for path in [*leaves(value)][:limit]:
        for number, new in enumerate(VALUES):
            label = f"{'.'.join(map(str, path))} = value {number}"
            yield label, write_value(name, changed(value, path, new))
        yield f"one more in {path}", write_value(name, extended(value, path, "extra"))
        if path:
            yield f"{'.'.join(map(str, path))} missing", write_value(name, without(value, path))
