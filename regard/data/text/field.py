"""Fields: raw text → token ids → padded tensors, and token ids → text."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.core.logging import logger
from regard.core.specs import TextSpec
from regard.data.text.tokenizers import Tokenizer, TokenizerConfig, split_at
from regard.data.text.vocabulary import train_tokenizer

TOKENIZER = "{}.tokenizer.json"
"""The file in a run folder that holds a side's vocabulary."""

Text = str | tuple[str, ...]
"""One text, or several that are read side by side."""


class TextField:
    """One side of an example.

    A source reads as `ids <eos>`, a target as `<sos> ids <eos>`; several texts read one after
    the other, each with its own end: `<sos> ids <eos> ids <eos>`.
    """

    modality = "text"

    def __init__(self, tokenizer: Tokenizer, *, has_start: bool) -> None:
        self.tokenizer = tokenizer
        self._start = [tokenizer.sos] if has_start else []

    @classmethod
    def fit(cls, config: TokenizerConfig, texts: Sequence[Text]) -> "TextField":
        """Return a field with a vocabulary trained on texts."""
        parts = [part for text in texts for part in texts_of(text)]
        return cls(train_tokenizer(config, parts), has_start=False)

    @classmethod
    def load(cls, folder: Path, side: str = "source") -> "TextField":
        """Read what `save` wrote."""
        return cls(Tokenizer.load(folder / tokenizer_file(side)), has_start=False)

    def add_start(self) -> None:
        """Begin every sequence with the start token from now on."""
        self._start = [self.tokenizer.sos]

    @property
    def text(self) -> "TextField":
        """The field itself: all of it is text."""
        return self

    @property
    def spec(self) -> TextSpec:
        """The number of tokens, as an encoder is built for it."""
        return TextSpec(self.size)

    @property
    def size(self) -> int:
        """Number of tokens, which a model is built for."""
        return self.tokenizer.vocab_size

    def read(self, raw: Text) -> list[int]:
        """Turn one text, or several side by side, into token ids, ends included."""
        return self._wrap([self.tokenizer.encode(part) for part in texts_of(raw)])

    def read_all(self, texts: Sequence[Text]) -> list[list[int]]:
        """Turn many texts into token ids, much faster than one by one."""
        rows = [texts_of(text) for text in texts]
        encoded = iter(self.tokenizer.encode_batch([part for row in rows for part in row]))
        return [self._wrap([next(encoded) for _ in row]) for row in rows]

    def shorten(self, ids: Sequence[int], most: int) -> list[int]:
        """Cut a sequence to `most` tokens; ends stay, and of several texts the longest gives."""
        if len(ids) <= most:
            return list(ids)
        parts = split_at(ids[len(self._start) : -1], self.tokenizer.eos)
        room = max(most - len(self._start) - len(parts), 0)
        while sum(map(len, parts)) > room:
            max(parts, key=len).pop()
        return self._wrap(parts)

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

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Return what an encoder reads of stacked values: of text, the ids themselves."""
        return values

    def save(self, folder: Path, name: str) -> None:
        """Write the vocabulary of the field of this name into a run folder."""
        self.tokenizer.save(folder / tokenizer_file(name))

    def warn_of_unknown(self, texts: Sequence[Text], what: str) -> None:
        """Say how many texts hold something that the vocabulary has never seen, and name one.

        Args:
            texts: As for `read_all`.
            what: What the texts are, in the plural.
        """
        unk = self.tokenizer.unk
        rows = [row for row, ids in enumerate(self.read_all(texts)) if unk in ids]
        if rows:
            example = next(
                piece for part in texts_of(texts[rows[0]]) for piece in self.tokenizer.unknown(part)
            )
            logger.warning(
                f"{len(rows):,} of {len(texts):,} {what} hold something that the vocabulary has "
                f"never seen (first: '{example}', in number {rows[0] + 1:,})."
            )

    def write(self, ids: Iterable[int]) -> str:
        """Turn token ids into text, up to the first end token."""
        ids = list(ids)
        if self.tokenizer.eos in ids:
            ids = ids[: ids.index(self.tokenizer.eos)]
        return self.tokenizer.decode(ids)

    def _wrap(self, parts: Sequence[Sequence[int]]) -> list[int]:
        return [*self._start, *(token for part in parts for token in (*part, self.tokenizer.eos))]


def tokenizer_file(name: str) -> str:
    """Return the file of a field's tokenizer; the only text field of a task is called `text`."""
    return "tokenizer.json" if name == "text" else TOKENIZER.format(name)


def both_sides(joint: Tokenizer) -> dict[str, TextField]:
    """Return the fields of a source and a target that share one vocabulary, by their names."""
    return {
        "source": TextField(joint, has_start=False),
        "target": TextField(joint, has_start=True),
    }


def texts_of(text: Text) -> tuple[str, ...]:
    """Return the texts of a source: one, or several."""
    return (text,) if isinstance(text, str) else text


def as_text(source: Text) -> str:
    """Return a source as one line: several texts are joined by tabs."""
    return "\t".join(texts_of(source))
