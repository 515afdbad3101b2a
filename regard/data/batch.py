"""Examples as padded tensors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

Moved = TypeVar("Moved", bound=Any)

Values = Any
"""Stacked sources: a tensor, or a tuple of tensors if a source has several parts."""


def map_tensors(values: Values, change: Callable[[Tensor], Tensor]) -> Values:
    """Apply `change` to every tensor of stacked sources; None stays None."""
    if values is None:
        return None
    return tuple(map(change, values)) if isinstance(values, tuple) else change(values)


def move(batch: Moved, device: torch.device, *names: str) -> Moved:
    """Return a batch with the named attributes moved to a device."""

    def to_device(part: Tensor) -> Tensor:
        return part.to(device, non_blocking=True)

    values = {name: map_tensors(getattr(batch, name), to_device) for name in names}
    moved: Moved = replace(batch, **values)
    return moved


def split_rows(batch: Moved, num_parts: int, *names: str) -> list[Moved]:
    """Split a batch by examples into at most `num_parts` batches of about the same size.

    Args:
        batch: The batch, with `rows`.
        num_parts: Maximum number of parts.
        names: The attributes with one element per example.
    """
    size = -(-len(batch.rows) // num_parts)

    def take(rows: slice) -> Moved:
        values = {
            name: map_tensors(getattr(batch, name), lambda part: part[rows]) for name in names
        }
        part: Moved = replace(batch, rows=batch.rows[rows], **values)
        return part

    return [take(slice(start, start + size)) for start in range(0, len(batch.rows), size)]


@dataclass(frozen=True, slots=True)
class Batch:
    """Sources and targets as padded tensors."""

    source: Values
    """(B, S) token ids, padded at the end; or images (B, C, Y, X), or a tuple of both."""
    source_mask: Tensor
    """(B, S) True = a real position."""
    target: Tensor
    """(B, T) token ids from the start token to the end token, padded at the end."""
    target_mask: Tensor
    """(B, T) True = a real position."""
    rows: tuple[int, ...]
    """Indexes of the examples."""
    links: Tensor | None = None
    """(B, T - 1, S) gold alignment of each target token after the start token with the source
    tokens; a row sums to 1, or to 0 without links. None if training does not use it."""

    @property
    def num_target_tokens(self) -> int:
        """Number of positions in the loss."""
        return int(self.target_mask[:, 1:].sum())

    def to(self, device: torch.device) -> "Batch":
        """Return the batch with its tensors on a device."""
        return move(self, device, "source", "source_mask", "target", "target_mask", "links")

    def split(self, num_parts: int) -> "list[Batch]":
        """Split by examples into at most `num_parts` batches of about the same size."""
        names = ("source", "source_mask", "target", "target_mask", "links")
        return split_rows(self, num_parts, *names)
