"""Checkpoints of weights and training state: safetensors and JSON, never pickle."""

import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from regard.core.errors import CheckpointError
from regard.core.files import read_json, replacing, write_json
from regard.core.records import check_file, shown_name

FORMAT_VERSION = 1

MAX_HEADER = 16 * 2**20
"""Maximum size of the header of a file of tensors, in bytes; a hundred thousand tensors fit."""

MAX_FAULTS = 8
"""Maximum number of weights that a message names."""

_AVERAGES = "ema.safetensors"


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights of a model; tied weights are stored once, under their first name."""
    weights = model.state_dict(keep_vars=True)
    first_names = [names[0] for names in _tied_names(weights)]
    _write_tensors(path, {name: weights[name] for name in first_names})


def load_weights(model: nn.Module, path: Path) -> None:
    """Read weights into a model, on the model's device."""
    put_weights(model, read_weights(path), str(path))


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file; raise `CheckpointError` if it is missing or damaged."""
    with open_weights(path) as file:
        return {name: file.read(name) for name in file.shapes()}


class WeightFile:
    """An open file of tensors: names and shapes without reading it, and single tensors."""

    def __init__(self, file: Any, path: Path) -> None:
        self._file = file
        self._path = path

    def shapes(self) -> dict[str, Sequence[int]]:
        """Return the shape of each tensor by its name, from the header."""
        return {name: self._file.get_slice(name).get_shape() for name in self._file.keys()}

    def read(self, name: str) -> Tensor:
        """Read a tensor; raise `CheckpointError` if it holds NaN or infinity."""
        tensor: Tensor = self._file.get_tensor(name)
        # The sum is finite if all numbers are, unless it overflows; it takes a third of the time.
        is_finite = tensor.is_complex() or not tensor.is_floating_point() or tensor.sum().isfinite()
        if not (is_finite or tensor.isfinite().all()):
            raise CheckpointError(
                f"{self._path} holds NaN or infinity in {shown_name(name)}. The training diverged "
                "or the file is damaged; use an earlier checkpoint, or train again."
            )
        return tensor


@contextmanager
def open_weights(path: Path) -> Iterator[WeightFile]:
    """Open a file of tensors; raise `CheckpointError` if it is missing or damaged."""
    check_file(path)
    try:
        with path.open("rb") as start:
            (header,) = struct.unpack("<Q", start.read(8).ljust(8, b"\0"))
        if header > MAX_HEADER:
            raise CheckpointError(
                f"{path} is damaged: its header must have at most {MAX_HEADER:,} bytes, but has "
                f"{header:,}. Copy it again, or train again."
            )
        with safe_open(path, framework="pt") as file:
            _check_version((file.metadata() or {}).get("version", str(FORMAT_VERSION)), path)
            yield WeightFile(file, path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is damaged ({error}). Copy it again, or train again."
        ) from None


def _check_version(version: str, path: Path) -> None:
    if version not in map(str, range(1, FORMAT_VERSION + 1)):
        raise CheckpointError(
            f"{path} was saved by format {version:.20}; this version reads 1-{FORMAT_VERSION}. "
            "Upgrade with `pip install -U regard`."
        )


def put_weights(model: nn.Module, weights: dict[str, Tensor], origin: str) -> None:
    """Copy weights into a model, all or nothing.

    Args:
        model: Model that receives the weights.
        weights: A tensor for each of the model's weights; one name is enough for tied weights.
        origin: Source of the weights, for the error message if they do not fit.
    """
    parameters = model.state_dict(keep_vars=True)
    check_fit(parameters, {name: tensor.shape for name, tensor in weights.items()}, origin)
    with torch.no_grad():
        for name, tensor in weights.items():
            parameters[name].copy_(tensor)


def check_fit(
    parameters: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]], origin: str
) -> None:
    """Raise `CheckpointError` unless weights have the names and shapes of those of a model.

    Args:
        parameters: The model's own weights, `state_dict(keep_vars=True)`.
        shapes: Shapes of the weights to load; one name is enough for tied weights.
        origin: Source of the weights, for the message.
    """
    faults = [
        f"{' = '.join(names)} is missing"
        for names in _tied_names(parameters)
        if not any(name in shapes for name in names)
    ]
    for name, shape in shapes.items():
        if name not in parameters:
            faults.append(f"{shown_name(name)} is unexpected")
        elif tuple(shape) != parameters[name].shape:
            faults.append(
                f"{name} is {describe_shape(shape)} but must be "
                f"{describe_shape(parameters[name].shape)}"
            )
    if faults:
        more = f" and {len(faults) - MAX_FAULTS:,} more" if len(faults) > MAX_FAULTS else ""
        raise CheckpointError(
            f"{origin} does not fit the model: {'; '.join(faults[:MAX_FAULTS])}{more}. "
            "Build the model with the settings it was trained with."
        )


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of the weights in several files; integers are taken from the last."""
    sums: dict[str, Tensor] = {}
    weights: dict[str, Tensor] = {}
    for path in paths:
        weights = read_weights(path)
        sums = sums or {name: torch.zeros_like(weights[name]).double() for name in weights}
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in sums.items()}:
            raise CheckpointError(
                f"{path} and {paths[0]} cannot be averaged: their weights differ in name or shape."
            )
        for name, tensor in weights.items():
            sums[name] += tensor
    return {
        name: (sums[name] / len(paths)).to(last.dtype) if last.is_floating_point() else last
        for name, last in weights.items()
    }


class Averages:
    """Checkpoints of the last validations, for weight averaging."""

    def __init__(self, folder: Path, max_kept: int) -> None:
        self._folder = folder
        self._max_kept = max_kept

    def keep(self, model: nn.Module, step: int) -> None:
        """Save the weights of a step and remove the oldest."""
        if self._max_kept:
            save_weights(model, self._folder / f"step-{step:09}.safetensors")
            for path in self.paths()[: -self._max_kept]:
                path.unlink()

    def remove(self, after: int) -> None:
        """Remove the weights of later steps."""
        for path in self.paths():
            if int(path.stem.removeprefix("step-")) > after:
                path.unlink()

    def paths(self) -> list[Path]:
        """Return the paths of the checkpoints, oldest first."""
        return sorted(self._folder.glob("step-*.safetensors"))


def save_training(
    run: Path,
    model: nn.Module,
    optimizer: Optimizer,
    *,
    state: dict[str, Any],
    averages: dict[str, Tensor] | None = None,
) -> None:
    """Write the training state to `run`/resume atomically.

    Args:
        run: The run folder.
        model: Saved with its current weights, not the best ones.
        optimizer: Its tensors are saved; its hyperparameters are part of the config.
        state: Further state that can be written as JSON.
        averages: Moving averages of the weights, if there are any.
    """
    current, part, old = run / "resume", run / "resume.part", run / "resume.old"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    save_weights(model, part / "model.safetensors")
    if averages:
        _write_tensors(part / _AVERAGES, averages)
    tensors = {
        f"state.{index}.{name}": value
        for index, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }
    _write_tensors(part / "training.safetensors", tensors | rng_states())
    kind = type(optimizer).__name__
    write_json(part / "training.json", {"optimizer": kind, "state": state})
    if current.exists():
        shutil.rmtree(old, ignore_errors=True)
        current.rename(old)
    part.rename(current)
    shutil.rmtree(old, ignore_errors=True)


def load_training(run: Path, model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """Restore weights, optimiser and random generators saved by `save_training`.

    Returns:
        The `state` that was saved.
    """
    folder = find_training(run)
    saved = read_json(folder / "training.json")
    tensors = read_weights(folder / "training.safetensors")
    kind = type(optimizer).__name__
    if saved["optimizer"] != kind:
        raise CheckpointError(
            f"{folder} was written with the optimiser {saved['optimizer']}, but "
            f"`train.optimizer` is {kind} now. Resume with the optimiser it was started with."
        )
    load_weights(model, folder / "model.safetensors")
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("state."):
            _, index, key = name.split(".", maxsplit=2)
            moments.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    restore_rng(tensors)
    state: dict[str, Any] = saved["state"]
    return state


def load_averages(run: Path) -> dict[str, Tensor]:
    """Return the moving averages saved by `save_training`; empty if there are none."""
    path = find_training(run) / _AVERAGES
    return read_weights(path) if path.exists() else {}


def find_training(run: Path) -> Path:
    """Return the folder to resume from: `resume`, or `resume.old` after a crash while saving."""
    for folder in (run / "resume", run / "resume.old"):
        if folder.is_dir():
            return folder
    raise CheckpointError(f"{run} has no state to resume from. Start without resuming.")


def remove_training(run: Path) -> None:
    """Remove the training state of an earlier run from a run folder."""
    for name in ("resume", "resume.part", "resume.old"):
        shutil.rmtree(run / name, ignore_errors=True)


def rng_states() -> dict[str, Tensor]:
    """Return the states of torch's random generators."""
    states = {"rng.cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for i, state in enumerate(torch.cuda.get_rng_state_all()):
            states[f"rng.cuda.{i}"] = state
    return states


def restore_rng(states: dict[str, Tensor]) -> None:
    """Set torch's random generators to states returned by `rng_states`."""
    torch.set_rng_state(states["rng.cpu"])
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            if f"rng.cuda.{i}" in states:
                torch.cuda.set_rng_state(states[f"rng.cuda.{i}"], i)


def _tied_names(weights: Mapping[str, Tensor]) -> list[list[str]]:
    """Group the names of one tensor."""
    groups: dict[int, list[str]] = {}
    for name, tensor in weights.items():
        groups.setdefault(id(tensor), []).append(name)
    return list(groups.values())


def _write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        try:
            save_file(stored, temporary, {"format": "regard", "version": str(FORMAT_VERSION)})
        except SafetensorError as error:
            raise CheckpointError(
                f"{path} could not be written ({error}). Is the disk full? "
                "The previous file is unchanged."
            ) from None


def describe_shape(shape: Sequence[int]) -> str:
    """Format the shape of a tensor for messages, such as '3 x 4'."""
    return " x ".join(map(str, shape)) or "a scalar"
