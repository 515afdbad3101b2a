"""Field of class labels, and batches of labelled sources."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.errors import DataError
from regard.core.files import read_record, write_json
from regard.core.tables import did_you_mean, one_of
from regard.data.batch import Values, map_tensors, move, split_rows
from regard.data.batching import Items, PairBatches, Rows
from regard.data.token_ids import Lengths


class LabelField:
    """Class labels of a task and their indexes."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def fit(cls, labels: Iterable[str]) -> "LabelField":
        """Build a field of all distinct labels in alphabetical order."""
        names = sorted(set(labels))
        if len(names) < 2:
            only = f"only {names[0]!r}" if names else "none"
            raise DataError(
                f"There must be at least two labels to distinguish, but there is {only} in the "
                "training data. A line holds a text, a tab and its label; images lie in a folder "
                "for each label."
            )
        return cls(names)

    def read(self, raw: str) -> int:
        """Return the index of a label; raise `DataError` if it is unknown."""
        if raw not in self._numbers:
            raise DataError(
                f"'{raw}' is not a label of this model: a label is {one_of(self.names)}."
                f"{did_you_mean(raw, self.names)}"
            )
        return self._numbers[raw]

    def read_all(self, raws: Sequence[str]) -> list[list[int]]:
        """Return the index of each label, as a sequence of one token."""
        return [[self.read(raw)] for raw in raws]

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.names)

    @property
    def digest(self) -> str:
        """Checksum of the encoding; fields with the same one encode every label equally."""
        return f"{type(self).__name__} {list(self.names)}"

    def write(self, number: int) -> str:
        """Return the label of an index."""
        return self.names[number]

    def save(self, folder: Path, name: str) -> None:
        """Write the labels in order into a run folder."""
        write_json(folder / f"{name}.json", list(self.names))

    @classmethod
    def load(cls, folder: Path, name: str = "labels") -> "LabelField":
        """Load a field that `save` wrote."""
        return cls(read_record(folder / f"{name}.json", list[str]))


@dataclass(frozen=True, slots=True)
class LabelledBatch:
    """Sources as padded tensors, each with its label."""

    source: Values
    """(B, S) token ids, padded at the end; or images (B, C, Y, X), or a tuple of both."""
    source_mask: Tensor
    """(B, S) True = a real position."""
    labels: Tensor
    """(B,) label indexes; or other targets, such as a label for each cell of an image, (B, Y, X),
    or the edges of a box, (B, 4)."""
    rows: tuple[int, ...]
    """Indexes of the examples."""

    @property
    def num_target_tokens(self) -> int:
        """Number of labels in the loss."""
        return len(self.rows)

    def to(self, device: torch.device) -> "LabelledBatch":
        """Return the batch with its tensors on a device."""
        return move(self, device, "source", "source_mask", "labels")

    def split(self, num_parts: int) -> "list[LabelledBatch]":
        """Split by examples into at most `num_parts` batches of about the same size."""
        return split_rows(self, num_parts, "source", "source_mask", "labels")


@dataclass(eq=False, repr=False)
class LabelledBatches(PairBatches[LabelledBatch]):
    """Batches of encoded sources with labels as targets."""

    @staticmethod
    def target_lengths(targets: Sequence[Any]) -> Lengths:
        """Return the length of each label: one."""
        return np.ones(len(targets), np.int32)

    def stack(self, rows: Rows, number: int) -> LabelledBatch:
        """Return the batch of some sources with their labels."""
        sources, targets = self.pairs(rows, number)
        source, mask = self.fields[0].stack(sources)
        labels = self.pin(self.stack_targets(targets))
        return LabelledBatch(map_tensors(source, self.pin), mask, labels, tuple(rows.tolist()))

    def stack_targets(self, targets: Items) -> Tensor:
        """Return labels as one tensor, (B,) or (B, ...)."""
        return torch.tensor(targets)
