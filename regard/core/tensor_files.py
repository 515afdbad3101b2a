"""Files of tensors: safetensors with the version of their format, never pickle."""

import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.core.errors import CheckpointError
from regard.core.records import check_run_file, shown_name

MAX_HEADER = 16 * 2**20
"""Maximum size of the header of a file, in bytes; a hundred thousand tensors fit."""

WRITTEN = "tensors.safetensors"
"""Name of a file that is being written, in a folder of its own."""

DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}
"""Types of numbers that a file may hold."""


class TensorFile:
    """An open file of tensors: drafts without reading it, and single tensors."""

    def __init__(self, file: Any, path: Path, version: int) -> None:
        self.version = version
        self._file = file
        self._path = path

    def drafts(self) -> dict[str, Tensor]:
        """Return shapes and types of all tensors, from the header, as tensors without memory."""
        drafts = {}
        for name in self._file.keys():  # noqa: SIM118
            entry = self._file.get_slice(name)
            if entry.get_dtype() not in DTYPES:
                raise CheckpointError(
                    f"{self._path} holds numbers of type {entry.get_dtype()} in "
                    f"{shown_name(name)}, which is not supported."
                )
            shape, dtype = entry.get_shape(), DTYPES[entry.get_dtype()]
            drafts[name] = torch.empty(shape, dtype=dtype, device="meta")
        return drafts

    def read(self, name: str) -> Tensor:
        """Read a tensor; raise `CheckpointError` if it holds NaN or infinity."""
        tensor: Tensor = self._file.get_tensor(name)
        # The sum is finite if all numbers are, unless it overflows; it takes a third of the time.
        is_finite = not tensor.is_floating_point() or tensor.sum().isfinite()
        if not (is_finite or tensor.isfinite().all()):
            raise CheckpointError(
                f"{self._path} holds NaN or infinity in {shown_name(name)}. The training diverged "
                "or the file is damaged; use an earlier checkpoint, or train again."
            )
        return tensor


@contextmanager
def open_tensors(path: Path, *, max_version: int) -> Iterator[TensorFile]:
    """Open a file of tensors.

    Raise `CheckpointError` if the file is missing, damaged or of a later version.
    """
    check_run_file(path)
    try:
        with path.open("rb") as start:
            (header,) = struct.unpack("<Q", start.read(8).ljust(8, b"\0"))
        if header > MAX_HEADER:
            raise CheckpointError(
                f"{path} is damaged: its header must have at most {MAX_HEADER:,} bytes, but has "
                f"{header:,}. Copy it again, or train again."
            )
        with safe_open(path, framework="pt") as file:
            version = (file.metadata() or {}).get("version", "1")
            if version not in map(str, range(1, max_version + 1)):
                raise CheckpointError(
                    f"{path} was saved by format {shown_name(version)}; this version reads "
                    f"1-{max_version}. Upgrade with `pip install -U regard`."
                )
            yield TensorFile(file, path, int(version))
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is damaged ({error}). Copy it again, or train again."
        ) from None


def read_tensors(path: Path, *, max_version: int) -> tuple[int, dict[str, Tensor]]:
    """Return the version of a file and its tensors; the errors are those of `open_tensors`."""
    with open_tensors(path, max_version=max_version) as file:
        return file.version, {name: file.read(name) for name in file.drafts()}


def write_tensors(path: Path, tensors: dict[str, Tensor], *, version: int) -> None:
    """Write tensors to a new file and to disk. Equal tensors give equal bytes."""
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # safetensors itself writes to a temporary file with a random name and renames it. After a kill,
    # `remove_leftovers` finds it in this folder.
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=".tensors.", suffix=".part"))
    try:
        # Several entries of metadata would be written in random order.
        save_file(stored, folder / WRITTEN, {"version": str(version)})
        with (folder / WRITTEN).open("rb") as written:
            os.fsync(written.fileno())
        (folder / WRITTEN).replace(path)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path.parent} cannot be written to ({error}). Is the disk full? "
            "The previous files are unchanged."
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
