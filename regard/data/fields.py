"""Fields: raw text → token ids → padded tensors, and token ids → text."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from regard.data.tokenizers import Tokenizer


class TextField:
    """One side of an example.

    A source reads as `ids <eos>`, a target as `<sos> ids <eos>`.
    """

    def __init__(self, tokenizer: Tokenizer, *, has_start: bool) -> None:
        self.tokenizer = tokenizer
        self._start = [tokenizer.sos] if has_start else []

    def read(self, raw: str) -> list[int]:
        """Turn one text into token ids, ends included."""
        return self._wrap(self.tokenizer.encode(raw))

    def read_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn many texts into token ids, much faster than one by one."""
        return [self._wrap(ids) for ids in self.tokenizer.encode_batch(texts)]

    def stack(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Pad sequences at the end to one length.

        Returns:
            The ids (B, L) and the mask (B, L), bool, True = a real position.
        """
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        longest = int(lengths.max())
        pad = self.tokenizer.pad
        values = torch.tensor([[*ids, *[pad] * (longest - len(ids))] for ids in sequences])
        return values, torch.arange(longest) < lengths[:, None]  # (B, L)

    def write(self, ids: Iterable[int]) -> str:
        """Turn token ids into text, up to the first end token."""
        ids = list(ids)
        if self.tokenizer.eos in ids:
            ids = ids[: ids.index(self.tokenizer.eos)]
        return self.tokenizer.decode(ids)

    def _wrap(self, ids: list[int]) -> list[int]:
        return [*self._start, *ids, self.tokenizer.eos]
