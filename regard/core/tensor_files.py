"""Files of tensors: safetensors with the version of their format, never pickle."""

import os
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.core.errors import CheckpointError


def read_tensors(path: Path, *, max_version: int) -> tuple[int, dict[str, Tensor]]:
    """Return the version of a file and its tensors.

    Raise `CheckpointError` if the file is missing, damaged or of a later version.
    """
    try:
        with safe_open(path, framework="pt") as file:
            version = int((file.metadata() or {}).get("version", 1))
            if version > max_version:
                raise CheckpointError(
                    f"{path} was saved by format {version}; this version reads 1-{max_version}. "
                    "Upgrade with `pip install -U regard`."
                )
            return version, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing. Is {path.parent} a run folder?") from None
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} is damaged ({error}). Copy it again, or train again."
        ) from None


def write_tensors(path: Path, tensors: dict[str, Tensor], *, version: int) -> None:
    """Write tensors to a new file and to disk. Equal tensors give equal bytes."""
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        # Several entries of metadata would be written in random order.
        save_file(stored, path, {"version": str(version)})
        with path.open("rb") as written:
            os.fsync(written.fileno())
    except SafetensorError as error:
        raise CheckpointError(
            f"{path.parent} cannot be written to ({error}). Is the disk full? "
            "The previous files are unchanged."
        ) from None
