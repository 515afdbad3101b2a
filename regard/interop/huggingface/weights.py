"""Weights of Hugging Face checkpoints: read, converted to float32 and written."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.core.errors import CheckpointError
from regard.core.files import read_json
from regard.interop.huggingface.layout import Layout
from regard.training.checkpoint import describe_shape, put_weights, read_weights

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"

MAX_NAMED = 3
"""Weights that a message names; of the others it gives the number."""

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def read_tensors(folder: Path, *, allows_pickle: bool) -> dict[str, Tensor]:
    """Read all weights of a folder, in one file or several.

    Args:
        folder: Where they lie.
        allows_pickle: Whether a pickle will do; only tensors are read from it, never code.
    """
    if (folder / WEIGHTS).exists():
        tensors = read_weights(folder / WEIGHTS)
    elif (folder / INDEX).exists():
        tensors = _read_shards(folder)
    elif (folder / PICKLE).exists() and allows_pickle:
        tensors = _read_pickle(folder / PICKLE)
    elif (folder / PICKLE).exists():
        raise CheckpointError(
            f"{folder} holds its weights as a pickle only ({PICKLE}), which could run any code. "
            f"Save it again with `transformers`, which writes {WEIGHTS}."
        )
    else:
        raise CheckpointError(f"{folder} must hold {WEIGHTS} or {INDEX}, but has neither.")
    return {_modernise(name): tensor for name, tensor in tensors.items()}


def _read_shards(folder: Path) -> dict[str, Tensor]:
    index = read_json(folder / INDEX)
    names = sorted(set(index.get("weight_map", {}).values()))
    if not names or any("/" in name or name.startswith(".") for name in names):
        raise CheckpointError(
            f"{folder / INDEX} must name files beside it under `weight_map`, but names {names}."
        )
    tensors: dict[str, Tensor] = {}
    for name in names:
        tensors |= read_weights(folder / name)
    return tensors


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # Whatever a damaged or a harmful pickle does.
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} cannot be read safely ({first}).") from None
    if not isinstance(found, dict) or not all(isinstance(t, Tensor) for t in found.values()):
        raise CheckpointError(f"{path} must hold tensors by name, but holds something else.")
    return found


def _modernise(name: str) -> str:
    """Spell a name of the first BERT folders, which came from TensorFlow, as it is spelled now."""
    return re.sub(r"\bgamma$", "weight", re.sub(r"\bbeta$", "bias", name))


def fill(
    model: nn.Module, tensors: dict[str, Tensor], layout: Layout, *, config: dict[str, Any]
) -> list[str]:
    """Copy the weights of a checkpoint into a model, or list all that do not fit.

    Args:
        model: Ours, with fresh weights.
        tensors: The checkpoint's weights, by name.
        layout: The kind of checkpoint.
        config: The checkpoint's options.

    Returns:
        Notes for the user, one sentence each.
    """
    own = dict(model.named_parameters())
    names = {name: layout.checkpoint_names(name, config) for name in own}
    head = {name for name in own if layout.head and name.startswith(layout.head)}
    is_headless = bool(head) and not any(n in tensors for own_name in head for n in names[own_name])
    wanted = [name for name in own if not (is_headless and name in head)]
    known = {spelling for name in wanted for spelling in names[name]}
    used = {name: tensor for name, tensor in tensors.items() if name in known}
    found: dict[str, Tensor] = {}
    untied: list[str] = []
    for name in wanted:
        first, *others = [spelling for spelling in names[name] if spelling in used] or [""]
        if first:
            found[name] = layout.import_weight(name, used[first], config).to(torch.float32)
        elif (default := layout.absent(name, own[name])) is not None:
            found[name] = default
        untied += [
            f"{other} differs from {first}"
            for other in others
            if not torch.equal(used[other].flatten(), used[first].flatten())
        ]
    _raise_if_any(
        {
            "missing": [names[name][0] for name in wanted if name not in found],
            "unexpected": [
                name for name in tensors if name not in known and not re.search(layout.unused, name)
            ],
            "of another shape": [
                f"{names[name][0]} is {describe_shape(tensor)} but must be "
                f"{describe_shape(own[name])}"
                for name, tensor in found.items()
                if tensor.shape != own[name].shape
            ],
            "not tied, as they are with us": untied,
            "not floating-point numbers": [
                f"{name} ({_name(tensor.dtype)})"
                for name, tensor in used.items()
                if tensor.dtype not in FLOATS
            ],
        }
    )
    put_weights(model, found | {n: own[n].data for n in own if n not in found}, "The folder")
    return _notes(used, missing=layout.head_role if is_headless else "")


def _notes(used: dict[str, Tensor], *, missing: str) -> list[str]:
    counts = Counter(tensor.dtype for tensor in used.values() if tensor.dtype != torch.float32)
    notes = [
        f"Converted from {_name(dtype)} to float32: {num} of {len(used)} weights."
        for dtype, num in counts.items()
    ]
    if missing:
        notes.append(f"The folder has no head that {missing}; it is fresh.")
    return notes


def _raise_if_any(faults: dict[str, list[str]]) -> None:
    parts = [f"{len(names)} {kind}: {_some(names)}" for kind, names in faults.items() if names]
    if parts:
        raise CheckpointError(f"The weights do not fit what config.json says; {'; '.join(parts)}.")


def _some(names: list[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def write_tensors(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Write weights as `transformers` reads them."""
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(stored, folder / WEIGHTS, {"format": "pt"})
