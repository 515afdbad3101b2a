"""Examples as padded tensors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

Moved = TypeVar("Moved", bound=Any)

Values = Any
"""Stacked sources: a tensor, or a tuple of tensors where a source has several parts."""


def change_values(values: Values, change: Callable[[Tensor], Tensor]) -> Values:
    """Apply `change` to stacked sources, to each part of them, where there are any."""
    if values is None:
        return None
    return tuple(map(change, values)) if isinstance(values, tuple) else change(values)


def move(batch: Moved, device: torch.device, *names: str) -> Moved:
    """Return a batch with the values of these names, where there are any, on a device."""

    def to_device(part: Tensor) -> Tensor:
        return part.to(device, non_blocking=True)

    values = {name: change_values(getattr(batch, name), to_device) for name in names}
    moved: Moved = replace(batch, **values)
    return moved


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples as padded tensors."""

    source: Values
    """(B, S) token ids, padded at the end; or images (B, C, Y, X), or both as a pair."""
    source_mask: Tensor
    """(B, S) True = a real position. It stays on the host: an encoder that needs lengths there
    can have them without waiting for the device."""
    target: Tensor
    """(B, T) token ids from the start token to the end token, padded at the end."""
    target_mask: Tensor
    """(B, T) True = a real position."""
    rows: tuple[int, ...]
    """Which examples these are."""

    @property
    def num_target_tokens(self) -> int:
        """Number of positions a loss is taken over."""
        return int(self.target_mask[:, 1:].sum())

    def to(self, device: torch.device) -> "Batch":
        """Return the batch with its values on a device."""
        return move(self, device, "source", "target", "target_mask")
