"""Text fields: raw text → token ids → padded tensors, and token ids → text."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.core.logging import logger
from regard.core.specs import TextSpec
from regard.data.text.tokenizers import Tokenizer, TokenizerConfig, split_at
from regard.data.text.vocabulary import train_tokenizer

TOKENIZER = "{}.tokenizer.json"
"""File in a run folder with the vocabulary of a side."""

Text = str | tuple[str, ...]
"""One text, or several texts that are encoded together."""


class TextField:
    """Text as one side of an example.

    A source is encoded as `ids <eos>`, a target as `<sos> ids <eos>`. Several texts are
    concatenated, each with its own end token: `<sos> ids <eos> ids <eos>`.
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
        """Load a field that `save` wrote."""
        return cls(Tokenizer.load(folder / tokenizer_file(side)), has_start=False)

    def add_start(self) -> None:
        """Start every sequence with the start token from now on."""
        self._start = [self.tokenizer.sos]

    @property
    def text(self) -> "TextField":
        """The field itself."""
        return self

    @property
    def spec(self) -> TextSpec:
        """Input specification of encoders."""
        return TextSpec(self.size)

    @property
    def size(self) -> int:
        """Vocabulary size."""
        return self.tokenizer.vocab_size

    @property
    def digest(self) -> str:
        """Checksum of the encoding; fields with the same one encode every text equally."""
        return f"{type(self).__name__} {self._start} {self.tokenizer.digest}"

    def read(self, raw: Text) -> list[int]:
        """Encode one text, or several together, as token ids with end tokens."""
        return self._wrap([self.tokenizer.encode(part) for part in texts_of(raw)])

    def read_all(self, texts: Sequence[Text]) -> list[list[int]]:
        """Encode many texts as token ids, much faster than one by one."""
        single = [text for text in texts if isinstance(text, str)]
        if len(single) == len(texts):
            start, end = self._start, self.tokenizer.eos
            return [[*start, *ids, end] for ids in self.tokenizer.encode_batch(single)]
        rows = [texts_of(text) for text in texts]
        encoded = iter(self.tokenizer.encode_batch([part for row in rows for part in row]))
        return [self._wrap([next(encoded) for _ in row]) for row in rows]

    def shorten(self, ids: Sequence[int], max_length: int) -> list[int]:
        """Truncate a sequence to `max_length` tokens, the longest text first; keep end tokens."""
        if len(ids) <= max_length:
            return list(ids)
        parts = split_at(ids[len(self._start) : -1], self.tokenizer.eos)
        num_kept = max(max_length - len(self._start) - len(parts), 0)
        while sum(map(len, parts)) > num_kept:
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
        """Return the inputs of an encoder: the token ids, unchanged."""
        return values

    def save(self, folder: Path, name: str) -> None:
        """Write the vocabulary into a run folder, under the name of the field."""
        self.tokenizer.save(folder / tokenizer_file(name))

    def warn_of_unknown(self, texts: Sequence[Text], what: str) -> list[list[int]]:
        """Log the number of texts with unknown tokens, and the first of these tokens.

        Args:
            texts: Texts as for `read_all`.
            what: Name of the texts in the message, in the plural.

        Returns:
            The token ids of the texts.
        """
        unk = self.tokenizer.unk
        encoded = self.read_all(texts)
        rows = [row for row, ids in enumerate(encoded) if unk in ids]
        if rows:
            example = next(
                word for part in texts_of(texts[rows[0]]) for word in self.tokenizer.unknown(part)
            )
            logger.warning(
                f"{len(rows):,} of {len(texts):,} {what} contain tokens that are not in the "
                f"vocabulary (first: '{example}', in number {rows[0] + 1:,})."
            )
        return encoded

    def write(self, ids: Iterable[int]) -> str:
        """Decode token ids as text, up to the first end token."""
        ids = list(ids)
        if self.tokenizer.eos in ids:
            ids = ids[: ids.index(self.tokenizer.eos)]
        return self.tokenizer.decode(ids)

    def _wrap(self, parts: Sequence[Sequence[int]]) -> list[int]:
        wrapped = [*self._start]
        for part in parts:
            wrapped += part
            wrapped.append(self.tokenizer.eos)
        return wrapped


def tokenizer_file(name: str) -> str:
    """Return the file name of a field's tokenizer; a task's only text field is named `text`."""
    return "tokenizer.json" if name == "text" else TOKENIZER.format(name)


def both_sides(joint: Tokenizer) -> dict[str, TextField]:
    """Return fields of source and target that share one vocabulary, by name."""
    return {
        "source": TextField(joint, has_start=False),
        "target": TextField(joint, has_start=True),
    }


def texts_of(text: Text) -> tuple[str, ...]:
    """Return the texts of a source as a tuple."""
    return (text,) if isinstance(text, str) else text


def as_text(source: Text) -> str:
    """Return a source as one line; several texts are joined by tabs."""
    return "\t".join(texts_of(source))
