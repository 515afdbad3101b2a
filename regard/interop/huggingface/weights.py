"""Reading, conversion to float32 and writing of the weights of Hugging Face checkpoints."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.core.errors import CheckpointError
from regard.core.files import read_record
from regard.core.records import check_record, shown
from regard.core.shapes import describe_shape
from regard.interop.huggingface.layout import Layout
from regard.interop.huggingface.torch_file import read_torch_file
from regard.training.checkpoint import read_weights

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TORCH = "pytorch_model.bin"

MAX_NAMED = 3
"""Maximum number of weights that a message names; the others are counted."""

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Read all weights of a Hugging Face folder, in one file or several."""
    if (folder / WEIGHTS).exists():
        tensors = read_weights(folder / WEIGHTS)
    elif (folder / INDEX).exists():
        tensors = _read_shards(folder)
    elif (folder / TORCH).exists():
        tensors = read_torch_file(folder / TORCH)
    else:
        raise CheckpointError(f"{folder} must hold {WEIGHTS}, {INDEX} or {TORCH}, but has none.")
    return {_rename_legacy(name): tensor for name, tensor in tensors.items()}


def _read_shards(folder: Path) -> dict[str, Tensor]:
    index = read_record(folder / INDEX, dict[str, Any])
    files = check_record(index.get("weight_map", {}), dict[str, str], f"{folder / INDEX}")
    names = sorted({*files.values()})
    if not names or not all(re.fullmatch(r"\w[\w.-]*", name) for name in names):
        raise CheckpointError(
            f"{folder / INDEX} must name files beside it under `weight_map`, but names "
            f"{shown(names)}."
        )
    tensors: dict[str, Tensor] = {}
    for name in names:
        tensors |= read_weights(folder / name)
    return tensors


def _rename_legacy(name: str) -> str:
    """Convert a name of early BERT checkpoints, which came from TensorFlow, to the current one."""
    return re.sub(r"\bgamma$", "weight", re.sub(r"\bbeta$", "bias", name))


def match_weights(
    model: nn.Module, tensors: dict[str, Tensor], layout: Layout, *, config: dict[str, Any]
) -> tuple[dict[str, Tensor], list[str]]:
    """Find the weights of a model in a checkpoint; raise `CheckpointError` with all mismatches.

    Args:
        model: Our model, which needs no memory for its weights.
        tensors: The checkpoint's weights by name.
        layout: The checkpoint's layout.
        config: The checkpoint's options.

    Returns:
        The weights by their names in our model, and notes for the user, one sentence each.
    """
    parameters = dict(model.named_parameters())
    names = {name: layout.checkpoint_names(name, config) for name in parameters}
    head = {name for name in parameters if layout.head and name.startswith(layout.head)}
    is_headless = bool(head) and not any(n in tensors for name in head for n in names[name])
    wanted = [name for name in parameters if not (is_headless and name in head)]
    known = {spelling for name in wanted for spelling in names[name]}
    used = {name: tensor for name, tensor in tensors.items() if name in known}
    loaded: dict[str, Tensor] = {}
    untied: list[str] = []
    for name in wanted:
        first, *others = [spelling for spelling in names[name] if spelling in used] or [""]
        if first:
            loaded[name] = layout.import_weight(name, used[first], config).to(torch.float32)
        elif (default := layout.default_weight(name, parameters[name])) is not None:
            loaded[name] = default
        untied += [
            f"{other} differs from {first}"
            for other in others
            if not torch.equal(used[other].flatten(), used[first].flatten())
        ]
    _raise_if_any(
        {
            "missing": [names[name][0] for name in wanted if name not in loaded],
            "unexpected": [
                name for name in tensors if name not in known and not re.search(layout.unused, name)
            ],
            "of another shape": [
                f"{names[name][0]} is {describe_shape(tensor)} but must be "
                f"{describe_shape(parameters[name])}"
                for name, tensor in loaded.items()
                if tensor.shape != parameters[name].shape
            ],
            "not tied, as they must be": untied,
            "not floating-point numbers": [
                f"{name} ({_name(tensor.dtype)})"
                for name, tensor in used.items()
                if tensor.dtype not in FLOATS
            ],
        }
    )
    return loaded, _notes(used, missing=layout.head_role if is_headless else "")


def _notes(used: dict[str, Tensor], *, missing: str) -> list[str]:
    counts = Counter(tensor.dtype for tensor in used.values() if tensor.dtype != torch.float32)
    notes = [
        f"Converted from {_name(dtype)} to float32: {num} of {len(used)} weights."
        for dtype, num in counts.items()
    ]
    if missing:
        notes.append(f"The folder has no head that {missing}; it is newly initialised.")
    return notes


def _raise_if_any(faults: dict[str, list[str]]) -> None:
    parts = [f"{len(names)} {kind}: {_some(names)}" for kind, names in faults.items() if names]
    if parts:
        raise CheckpointError(f"The weights do not match config.json; {'; '.join(parts)}.")


def _some(names: list[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def write_tensors(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Write weights in the format of `transformers`."""
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(stored, folder / WEIGHTS, {"format": "pt"})
