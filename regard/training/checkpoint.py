"""Checkpoints of weights and training state: safetensors and JSON, never pickle."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regard.core.checksums import (
    add_checksums,
    check_file,
    find_faults,
    replacing_listed,
)
from regard.core.errors import CheckpointError
from regard.core.files import read_json, sync_folder, write_json
from regard.core.logging import logger
from regard.core.records import listed, shown_name
from regard.core.shapes import describe_shape
from regard.core.tensor_files import read_tensors, write_tensors
from regard.training.optimizer_state import State, load_state, name_state, read_state

FORMAT_VERSION = 1
"""Version of the format of weights."""

NAMED_STATE = 2
"""Version of the format of training states: 1 had the state of the optimiser by number."""

RESUME, PREVIOUS = "resume", "resume.old"
"""Folders of the last training state and of the one before it."""

_PART, _DISCARDED = "resume.part", "resume.discarded"

STATES = (RESUME, PREVIOUS, _PART, _DISCARDED)
"""Folders of complete and of incomplete training states."""

_WEIGHTS = "model.safetensors"
_AVERAGES = "ema.safetensors"
_TENSORS = "training.safetensors"
_STATE = "training.json"


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights of a model; tied weights are stored once, under their first name."""
    with replacing_listed(path) as temporary:
        write_tensors(temporary, _untied_weights(model), version=FORMAT_VERSION)


def load_weights(model: nn.Module, path: Path) -> None:
    """Read weights into a model, on the model's device."""
    put_weights(model, read_weights(path), str(path))


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file; raise `CheckpointError` if it is missing or damaged."""
    check_file(path)
    return read_tensors(path, max_version=FORMAT_VERSION)[1]


def put_weights(model: nn.Module, weights: dict[str, Tensor], origin: str) -> None:
    """Copy weights into a model, all or nothing; the arguments are those of `check_weights`."""
    check_weights(model, weights, origin)
    parameters = model.state_dict()
    with torch.no_grad():
        for name, tensor in weights.items():
            parameters[name].copy_(tensor)


def check_weights(model: nn.Module, weights: dict[str, Tensor], origin: str) -> None:
    """Raise `CheckpointError` if weights do not fit a model.

    Args:
        model: Model that is to receive the weights.
        weights: A tensor for each of the model's weights; one name is enough for tied weights.
        origin: Source of the weights, for the error message.
    """
    parameters = model.state_dict(keep_vars=True)
    faults = [
        f"{' = '.join(names)} is missing"
        for names in _tied_names(parameters)
        if not any(name in weights for name in names)
    ]
    faults += _misfits(weights, parameters)
    if faults:
        raise CheckpointError(
            f"{origin} does not fit the model: {listed(faults)}. "
            "Build the model with the settings it was trained with."
        )


@dataclass(frozen=True)
class Snapshot:
    """Everything that training continues from: the state after a step."""

    weights: dict[str, Tensor]
    """Weights and buffers of the model, which are not the best ones."""
    averages: dict[str, Tensor]
    """Moving averages of the weights; empty if there are none."""
    optimizer: str
    """Class of the optimiser."""
    moments: State
    """State of the optimiser; its hyperparameters are part of the config."""
    rng: dict[str, Tensor]
    """States of the random generators."""
    state: dict[str, Any]
    """Further state that can be written as JSON."""
    is_named: bool = True
    """Whether `moments` are by name of the parameter, not by number as in earlier versions."""


def take_snapshot(
    model: nn.Module,
    optimizer: Optimizer,
    *,
    state: dict[str, Any],
    averages: dict[str, Tensor] | None = None,
) -> Snapshot:
    """Return the state of training; the tensors are those of the model, not copies.

    Args:
        model: The model.
        optimizer: Its optimiser.
        state: Further state that can be written as JSON.
        averages: Moving averages of the weights, if there are any.
    """
    return Snapshot(
        weights=_untied_weights(model),
        averages=averages or {},
        optimizer=type(optimizer).__name__,
        moments=read_state(model, optimizer),
        rng=rng_states(),
        state=state,
    )


def write_snapshot(run: Path, snapshot: Snapshot) -> None:
    """Write the training state to `run`/resume atomically and keep the one before it.

    At every moment there is a complete state in the folder.
    """
    current, previous, part, discarded = (run / name for name in STATES)
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(discarded, ignore_errors=True)
    try:
        part.mkdir()
        _write_snapshot_files(part, snapshot)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)  # on a full disk, its space is needed
        raise
    if current.exists():
        if previous.exists():
            previous.rename(discarded)
        current.rename(previous)
    part.rename(current)
    sync_folder(run)
    shutil.rmtree(discarded, ignore_errors=True)


def _write_snapshot_files(folder: Path, snapshot: Snapshot) -> None:
    write_tensors(folder / _WEIGHTS, snapshot.weights, version=FORMAT_VERSION)
    if snapshot.averages:
        write_tensors(folder / _AVERAGES, snapshot.averages, version=FORMAT_VERSION)
    moments = {
        f"state.{name}.{key}": value
        for name, values in snapshot.moments.items()
        for key, value in values.items()
    }
    write_tensors(folder / _TENSORS, moments | snapshot.rng, version=NAMED_STATE)
    write_json(folder / _STATE, {"optimizer": snapshot.optimizer, "state": snapshot.state})
    add_checksums(folder)


def read_snapshot(folder: Path) -> Snapshot:
    """Read the training state in a folder found by `find_training`."""
    saved = read_json(folder / _STATE)
    is_valid = isinstance(saved, dict) and isinstance(saved.get("state"), dict)
    if not is_valid or not isinstance(saved.get("optimizer"), str):
        raise CheckpointError(f"{folder / _STATE} has no training state. The file is damaged.")
    version, tensors = read_tensors(folder / _TENSORS, max_version=NAMED_STATE)
    moments: State = {}
    for name, tensor in tensors.items():
        if name.startswith("state."):
            # Names of parameters contain dots, keys such as `exp_avg` do not.
            parameter, _, key = name.removeprefix("state.").rpartition(".")
            moments.setdefault(parameter, {})[key] = tensor
    averages = folder / _AVERAGES
    return Snapshot(
        weights=read_weights(folder / _WEIGHTS),
        averages=read_weights(averages) if averages.exists() else {},
        optimizer=saved["optimizer"],
        moments=moments,
        rng={name: tensor for name, tensor in tensors.items() if name.startswith("rng.")},
        state=saved["state"],
        is_named=version >= NAMED_STATE,
    )


def save_training(
    run: Path,
    model: nn.Module,
    optimizer: Optimizer,
    *,
    state: dict[str, Any],
    averages: dict[str, Tensor] | None = None,
) -> None:
    """Write the training state to `run`/resume; the arguments are those of `take_snapshot`."""
    write_snapshot(run, take_snapshot(model, optimizer, state=state, averages=averages))


def load_training(run: Path, model: nn.Module, optimizer: Optimizer) -> Snapshot:
    """Restore weights, optimiser and random generators from the last undamaged training state.

    Everything is checked before anything is changed.

    Returns:
        The training state, with what else was saved.
    """
    folder = find_training(run)
    snapshot, origin = read_snapshot(folder), str(folder)
    kind = type(optimizer).__name__
    if snapshot.optimizer != kind:
        raise CheckpointError(
            f"{origin} was written with the optimiser {shown_name(snapshot.optimizer)}, but "
            f"`train.optimizer` is {kind} now. Resume with the optimiser it was started with."
        )
    moments = snapshot.moments
    if not snapshot.is_named:
        moments = name_state(model, optimizer, moments, origin=origin)
    check_weights(model, snapshot.weights, origin)
    if faults := _misfits(snapshot.averages, dict(model.named_parameters())):
        raise CheckpointError(f"The averages of {origin} do not fit: {listed(faults)}.")
    _check_rng(snapshot.rng, origin)
    load_state(model, optimizer, moments, origin=origin)
    put_weights(model, snapshot.weights, origin)
    restore_rng(snapshot.rng)
    return snapshot


def find_training(run: Path) -> Path:
    """Return the folder of the last undamaged training state; log which one is damaged."""
    damages: list[str] = []
    for folder in (run / RESUME, run / PREVIOUS):
        if not folder.exists():
            continue
        faults = find_faults(folder) if folder.is_dir() else ["it is not a folder"]
        if not faults:
            if damages:
                logger.warning("%s. Resuming from %s, saved before it.", damages[0], folder)
            return folder
        damages.append(f"{folder} is damaged: {listed(faults)}")
    if damages:
        raise CheckpointError(f"{'. '.join(damages)}. Train again with --force.")
    raise CheckpointError(f"{run} has no state to resume from. Start without resuming.")


def has_training(run: Path) -> bool:
    """Return whether a run folder has a state to resume from."""
    return any((run / name).is_dir() for name in (RESUME, PREVIOUS))


def remove_training(run: Path) -> None:
    """Remove the training state of an earlier run from a run folder."""
    for name in STATES:
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


def _check_rng(states: dict[str, Tensor], origin: str) -> None:
    """Raise `CheckpointError` if the generators do not accept the states of a file."""
    before = rng_states()
    try:
        restore_rng(states)
    except (KeyError, RuntimeError, TypeError) as error:
        raise CheckpointError(
            f"{origin} has no valid states of random generators ({error}). The file is damaged."
        ) from None
    finally:
        restore_rng(before)


def _untied_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a model, tied ones once, under their first name."""
    weights = model.state_dict(keep_vars=True)
    return {names[0]: weights[names[0]] for names in _tied_names(weights)}


def _tied_names(weights: dict[str, Tensor]) -> list[list[str]]:
    """Group the names that share one tensor."""
    groups: dict[int, list[str]] = {}
    for name, tensor in weights.items():
        groups.setdefault(id(tensor), []).append(name)
    return list(groups.values())


def _misfits(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> list[str]:
    """Return the tensors whose name, shape or kind of number is not expected."""
    faults: list[str] = []
    for name, tensor in tensors.items():
        if name not in expected:
            faults.append(f"{shown_name(name)} is unexpected")
        elif tensor.shape != expected[name].shape:
            faults.append(
                f"{name} is {describe_shape(tensor)} but must be {describe_shape(expected[name])}"
            )
        elif _number_kind(tensor) != _number_kind(expected[name]):
            found, needed = (
                str(one.dtype).removeprefix("torch.") for one in (tensor, expected[name])
            )
            faults.append(f"{name} has numbers of {found} but must have {needed}")
    return faults


def _number_kind(tensor: Tensor) -> torch.dtype | str:
    """Return the type of integers; floating-point numbers of any precision are converted."""
    return "float" if tensor.is_floating_point() else tensor.dtype
