"""Tensors of `pytorch_model.bin`, read without `pickle`: the file is parsed, and nothing is run.

A pickle is a program for a stack machine. Only the few instructions that describe a dictionary of
tensors are followed here. Every function that it names, but those that build tensors, is an error.
"""

import math
import pickletools
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from regard.core.errors import CheckpointError
from regard.core.records import check_run_file, shown, shown_name

MAX_OPCODES = 1_000_000
"""Maximum number of instructions of a pickle; a tensor takes about forty."""

DTYPES = {
    "torch FloatStorage": torch.float32,
    "torch HalfStorage": torch.float16,
    "torch BFloat16Storage": torch.bfloat16,
    "torch DoubleStorage": torch.float64,
    "torch LongStorage": torch.int64,
    "torch IntStorage": torch.int32,
}
"""Classes of storages and their types."""

DICTIONARY = "collections OrderedDict"
TENSOR = "torch._utils _rebuild_tensor_v2"
PARAMETER = "torch._utils _rebuild_parameter"

MAGIC = 0x1950A86A20F9469CFC6C
"""First value of files before torch 1.6, which hold several pickles and then the storages."""

_DAMAGES = (
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    OverflowError,
    RuntimeError,
    StopIteration,
    struct.error,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)
"""Errors of the parsers here, in `pickletools` and in `zipfile` for damaged files."""

_MARK = object()


@dataclass(frozen=True)
class _Name:
    """A function or class that a pickle names; it is never imported."""

    name: str


@dataclass(frozen=True)
class _Storage:
    dtype: torch.dtype
    key: str
    num: int


@dataclass(frozen=True)
class _View:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_file(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file that `torch.save` wrote; raise `CheckpointError` for any other."""
    check_run_file(path)
    try:
        is_zip = zipfile.is_zipfile(path)
        return _read_zip(path) if is_zip else _read_old(path)
    except _DAMAGES as error:
        fault = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    raise CheckpointError(
        f"{path} must hold tensors by name and nothing else, but does not ({fault}). Save the "
        "model again as safetensors where you trust it."
    )


def _read_zip(path: Path) -> dict[str, Tensor]:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.partition("/")[2]: info for info in archive.infolist()}
        if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
            raise ValueError("a member is compressed")
        with archive.open(members["data.pkl"]) as file:
            views = _views(_parse(file))

        def read(storage: _Storage) -> bytes:
            info = members[f"data/{storage.key}"]
            if info.file_size != storage.num * storage.dtype.itemsize:
                raise ValueError(f"storage {storage.key} has {info.file_size:,} bytes")
            return archive.read(info)

        return {name: _to_tensor(view, read) for name, view in views.items()}


def _read_old(path: Path) -> dict[str, Tensor]:
    with path.open("rb") as file:
        if _parse(file) != MAGIC:
            raise ValueError("it is neither a zip archive nor a file of torch")
        _parse(file)  # version of the format
        _parse(file)  # description of the system, little-endian everywhere
        views = _views(_parse(file))
        keys = _parse(file)
        sizes = {view.storage.key: view.storage for view in views.values()}
        contents = {}
        for key in keys:
            (num,) = struct.unpack("<Q", file.read(8))
            size = sizes[key].num * sizes[key].dtype.itemsize
            contents[key] = file.read(size)
            if num != sizes[key].num or len(contents[key]) != size:
                raise ValueError(f"storage {key} has {num:,} values")
        return {
            name: _to_tensor(view, lambda storage: contents[storage.key])
            for name, view in views.items()
        }


def _views(value: Any) -> dict[str, _View]:
    if not isinstance(value, dict):
        raise ValueError("it is not a dictionary")
    for name, view in value.items():
        if not isinstance(name, str) or not isinstance(view, _View):
            raise ValueError(f"{shown(name)} is not a tensor")
    return value


def _to_tensor(view: _View, read: Callable[[_Storage], bytes]) -> Tensor:
    last = view.offset + sum(
        (size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True)
    )
    numbers = [view.offset, *view.shape, *view.strides]
    is_inside = last < view.storage.num and math.prod(view.shape) <= view.storage.num
    if not all(isinstance(number, int) and number >= 0 for number in numbers) or not is_inside:
        raise ValueError(f"a tensor of shape {shown(view.shape)} exceeds its storage")
    if 0 in view.shape:
        return torch.empty(view.shape, dtype=view.storage.dtype)
    values = torch.frombuffer(bytearray(read(view.storage)), dtype=view.storage.dtype)
    return values.as_strided(view.shape, view.strides, view.offset).clone()


def _parse(file: IO[bytes]) -> Any:
    """Return the value of one pickle, of dictionaries, tuples, lists, plain values and `_View`."""
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    for number, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if number >= MAX_OPCODES:
            raise ValueError(f"it has more than {MAX_OPCODES:,} instructions")
        name = opcode.name
        if name == "STOP":
            return stack.pop()
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _STACK_OPCODES:
            _STACK_OPCODES[name](stack)
        elif name == "GLOBAL":
            stack.append(_Name(str(argument)))
        elif name in _VALUES:
            stack.append(argument)
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"it has the instruction {name}")
    raise EOFError("it is cut short")


_VALUES = ("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "SHORT_BINSTRING")


def _pop_to_mark(stack: list[Any]) -> list[Any]:
    start = len(stack) - 1 - next(i for i, one in enumerate(reversed(stack)) if one is _MARK)
    items = stack[start + 1 :]
    del stack[start:]
    return items


def _push_tuple(num: int) -> Callable[[list[Any]], None]:
    def push(stack: list[Any]) -> None:
        items = tuple(stack[len(stack) - num :])
        del stack[len(stack) - num :]
        stack.append(items)

    return push


def _set_items(stack: list[Any]) -> None:
    items = _pop_to_mark(stack)
    stack[-1].update(zip(items[::2], items[1::2], strict=True))


def _set_item(stack: list[Any]) -> None:
    value, key = stack.pop(), stack.pop()
    stack[-1][key] = value


def _append_items(stack: list[Any]) -> None:
    items = _pop_to_mark(stack)
    stack[-1].extend(items)


def _append_item(stack: list[Any]) -> None:
    value = stack.pop()
    stack[-1].append(value)


def _build(stack: list[Any]) -> None:
    """Drop the attributes of a dictionary, such as versions of the modules."""
    stack.pop()


def _load_storage(stack: list[Any]) -> None:
    kind, storage, key, _, num = stack.pop()[:5]
    if kind != "storage" or not isinstance(storage, _Name) or storage.name not in DTYPES:
        raise ValueError(f"it has the storage {shown(storage)}")
    if not isinstance(key, str) or not isinstance(num, int) or num < 0:
        raise ValueError("it has a storage without key or size")
    stack.append(_Storage(DTYPES[storage.name], key, num))


def _reduce(stack: list[Any]) -> None:
    """Follow the call of one of the functions that build tensors; any other is an error."""
    arguments, function = stack.pop(), stack.pop()
    name = function.name if isinstance(function, _Name) else shown(function)
    if name == DICTIONARY and arguments == ():
        stack.append({})
    elif name == TENSOR and isinstance(arguments[0], _Storage):
        stack.append(_View(*arguments[:4]))
    elif name == PARAMETER and isinstance(arguments[0], _View):
        stack.append(arguments[0])
    else:
        raise ValueError(f"it calls {shown_name(name)}")


_STACK_OPCODES: dict[str, Callable[[list[Any]], None]] = {
    "EMPTY_DICT": lambda stack: stack.append({}),
    "EMPTY_LIST": lambda stack: stack.append([]),
    "EMPTY_TUPLE": lambda stack: stack.append(()),
    "MARK": lambda stack: stack.append(_MARK),
    "NONE": lambda stack: stack.append(None),
    "NEWTRUE": lambda stack: stack.append(True),
    "NEWFALSE": lambda stack: stack.append(False),
    "TUPLE": lambda stack: stack.append(tuple(_pop_to_mark(stack))),
    "TUPLE1": _push_tuple(1),
    "TUPLE2": _push_tuple(2),
    "TUPLE3": _push_tuple(3),
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "APPEND": _append_item,
    "APPENDS": _append_items,
    "BUILD": _build,
    "BINPERSID": _load_storage,
    "REDUCE": _reduce,
}
"""Instructions that change the stack alone."""
