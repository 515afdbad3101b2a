"""Batches of packed texts with masked tokens."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from regard.data.batch import move, split_rows
from regard.data.batching import PairBatches, Rows
from regard.data.text.masking import Masking


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Texts with masked tokens, as padded tensors."""

    values: Tensor
    """(B, S) token ids after masking, padded at the end."""
    mask: Tensor
    """(B, S) True = a real position."""
    masked_positions: Tensor
    """(L,) masked positions, as indexes into the flattened (B · S,) batch."""
    labels: Tensor
    """(L,) original tokens at the masked positions."""
    is_next: Tensor | None
    """(B,) 1 = the second text follows the first in the corpus; None without pairs."""
    rows: tuple[int, ...]
    """Numbers of the texts."""

    @property
    def num_target_tokens(self) -> int:
        """Number of positions in the loss."""
        return len(self.labels)

    def to(self, device: torch.device) -> "MaskedBatch":
        """Return the batch with its values on a device."""
        return move(self, device, "values", "masked_positions", "labels", "is_next")

    def split(self, num_parts: int) -> "list[MaskedBatch]":
        """Split by texts into at most `num_parts` batches of about the same size."""
        parts = split_rows(self, num_parts, "values", "mask", "is_next")
        width, end = self.values.shape[1], 0
        for number, part in enumerate(parts):
            start, end = end, end + width * len(part.rows)
            is_inside = (self.masked_positions >= start) & (self.masked_positions < end)
            parts[number] = replace(
                part,
                masked_positions=self.masked_positions[is_inside] - start,
                labels=self.labels[is_inside],
            )
        return parts


@dataclass(eq=False, repr=False)
class MaskedBatches(PairBatches[MaskedBatch]):
    """Packed texts as sources and targets, masked anew in each epoch."""

    masking: Masking = field(kw_only=True)
    """Masking to apply."""
    is_next: list[bool] | None = field(default=None, kw_only=True)
    """Whether the second text of each pair follows the first; None without pairs."""

    def stack(self, rows: Rows, number: int) -> MaskedBatch:
        """Return texts as masked in an epoch."""
        texts, _ = self.pairs(rows, number)
        values, mask = self.fields[0].stack(texts)
        masked = self.masking.mask(values.numpy(), rows, epoch=number)
        positions = torch.from_numpy(np.flatnonzero(masked.is_masked))
        is_next = self.is_next
        return MaskedBatch(
            values=self.pin(torch.from_numpy(masked.values)),
            mask=mask,
            masked_positions=self.pin(positions),
            labels=self.pin(values.flatten()[positions]),
            is_next=None if is_next is None else torch.tensor([int(is_next[row]) for row in rows]),
            rows=tuple(rows.tolist()),
        )
