"""Packed texts as batches of which some tokens are hidden."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from regard.data.batch import move
from regard.data.batching import PairBatches, Rows
from regard.data.text.masking import Masking


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
        return move(self, device, "values", "hidden", "labels", "belongs")


@dataclass(eq=False, repr=False)
class MaskedBatches(PairBatches[MaskedBatch]):
    """Packed texts, as sources and as targets; what is masked depends on the epoch alone."""

    masking: Masking = field(kw_only=True)
    """It hides."""
    belongs: list[bool] | None = field(default=None, kw_only=True)
    """Whether the two texts of each pair follow one another; absent where there are no pairs."""

    def stack(self, rows: Rows, number: int) -> MaskedBatch:
        """Return some texts with what is hidden in an epoch."""
        texts, _ = self.pairs(rows, number)
        values, mask = self.fields[0].stack(texts)
        masked = self.masking.hide(values.numpy(), rows, epoch=number)
        hidden = torch.from_numpy(np.flatnonzero(masked.hidden))
        belongs = self.belongs
        return MaskedBatch(
            values=self.pin(torch.from_numpy(masked.values)),
            mask=mask,
            hidden=self.pin(hidden),
            labels=self.pin(values.flatten()[hidden]),
            belongs=None if belongs is None else torch.tensor([int(belongs[row]) for row in rows]),
            rows=tuple(rows.tolist()),
        )
