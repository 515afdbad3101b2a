"""Packed texts as batches of which some tokens are hidden."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regard.data.batching import BatchConfig, Batches
from regard.data.text.field import TextField
from regard.data.text.masking import Masking
from regard.data.text.packing import Packed


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Texts of which some tokens are hidden, as padded tensors."""

    values: Tensor
    """(B, S) token ids as they are shown, padded at the end."""
    mask: Tensor
    """(B, S) True = a real position; it stays on the host."""
    hidden: Tensor
    """(L,) the hidden positions, counted through all texts laid end to end."""
    labels: Tensor
    """(L,) the tokens there."""
    belongs: Tensor | None
    """(B,) 1 = the two texts follow one another; absent where there are no pairs."""
    rows: tuple[int, ...]
    """Which texts these are."""

    @property
    def num_target_tokens(self) -> int:
        """Number of positions a loss is taken over."""
        return len(self.labels)

    def to(self, device: torch.device) -> "MaskedBatch":
        """Return the batch with its values on a device."""
        return replace(
            self,
            values=self.values.to(device, non_blocking=True),
            hidden=self.hidden.to(device, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
            belongs=None if self.belongs is None else self.belongs.to(device, non_blocking=True),
        )


class MaskedBatches:
    """Batches in an order that can be resumed; what is masked depends on the epoch alone."""

    def __init__(
        self,
        packed: Packed,
        config: BatchConfig,
        *,
        field: TextField,
        masking: Masking,
        seed: int = 0,
        is_shuffled: bool = True,
        is_pinned: bool = False,
    ) -> None:
        """Prepare batches.

        Args:
            packed: The texts.
            config: Budget and limits.
            field: It pads.
            masking: It hides.
            seed: Another seed is another order.
            is_shuffled: Whether every epoch has an order of its own.
            is_pinned: Whether tensors are put where a GPU fetches them without waiting.
        """
        self._packed = packed
        self._field = field
        self._masking = masking
        self._is_pinned = is_pinned
        self._order = Batches(
            packed.sequences,
            packed.sequences,
            config,
            fields=(field, field),
            seed=seed,
            is_shuffled=is_shuffled,
        )

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[MaskedBatch]:
        """Give the batches of an epoch without the first `skip`."""
        for rows in self._order.plan(number)[skip:]:
            yield self._stack(rows.tolist(), number)

    def num_batches(self, number: int) -> int:
        """Return how many batches an epoch has."""
        return self._order.num_batches(number)

    def _stack(self, rows: list[int], number: int) -> MaskedBatch:
        values, mask = self._field.stack([self._packed.sequences[row] for row in rows])
        masked = self._masking.hide(values.numpy(), np.array(rows), epoch=number)
        hidden = torch.from_numpy(np.flatnonzero(masked.hidden))
        belongs = self._packed.belongs
        return MaskedBatch(
            values=self._pin(torch.from_numpy(masked.values)),
            mask=mask,
            hidden=self._pin(hidden),
            labels=self._pin(values.flatten()[hidden]),
            belongs=None if belongs is None else torch.tensor([int(belongs[row]) for row in rows]),
            rows=tuple(rows),
        )

    def _pin(self, tensor: Tensor) -> Tensor:
        return tensor.pin_memory() if self._is_pinned else tensor
