"""Examples as padded tensors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Values = Any
"""Stacked sources: a tensor, or a tuple of tensors where a source has several parts."""


def change_values(values: Values, change: Callable[[Tensor], Tensor]) -> Values:
    """Apply `change` to stacked sources, to each part of them."""
    return tuple(map(change, values)) if isinstance(values, tuple) else change(values)


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
        return Batch(
            source=change_values(self.source, lambda part: part.to(device, non_blocking=True)),
            source_mask=self.source_mask,
            target=self.target.to(device, non_blocking=True),
            target_mask=self.target_mask.to(device, non_blocking=True),
            rows=self.rows,
        )
