"""A text as one stream of token ids, from its first line to its last."""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from regard.data.text.tokenizers import Tokenizer
from regard.data.text.windows import Ids


class StreamField:
    """Lines of a text → one stream of token ids, and token ids → text.

    Bytes tell the text exactly, its line ends included. Every other tokenizer gives up blanks at
    the ends of lines, so there the end token stands for a line end, and a blank line is that alone.

    Args:
        tokenizer: What cuts the lines.
        is_exact: Whether line ends are tokens of the text itself, as in bytes.
    """

    def __init__(self, tokenizer: Tokenizer, *, is_exact: bool) -> None:
        self.tokenizer = tokenizer
        self.is_exact = is_exact
        self.line_end = tokenizer.encode("\n")[0] if is_exact else tokenizer.eos
        """What stands between lines, and before the first token of a text."""

    def read(self, text: str) -> list[int]:
        """Turn a text into token ids, without the line end before it."""
        return self.read_all([text])[0]

    def read_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Turn lines into token ids, each with its line end if it has one."""
        found = self.tokenizer.encode_batch(list(lines))
        if self.is_exact:
            return found
        return [
            [*ids, *[self.line_end] * line.endswith("\n")]
            for ids, line in zip(found, lines, strict=True)
        ]

    def stream(self, lines: Sequence[str]) -> Ids:
        """Turn a text into one array of ids, which begins with a line end.

        Every token of the text then has something before it, and none is left uncounted.
        """
        ids = chain([self.line_end], *self.read_all(lines))
        return np.fromiter(ids, np.int32)

    def stack(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Put a line end before texts, and padding after them, which nobody sees: (B, T)."""
        longest = max(map(len, texts))
        pad = self.tokenizer.pad
        return torch.tensor(
            [[self.line_end, *text, *[pad] * (longest - len(text))] for text in texts]
        )

    def write(self, ids: Iterable[int]) -> str:
        """Turn token ids into text; an end token is a line end."""
        pieces: list[list[int]] = [[]]
        for index in ids:
            if index == self.tokenizer.eos:
                pieces.append([])
            else:
                pieces[-1].append(index)
        return "\n".join(self.tokenizer.decode(piece) for piece in pieces)


def group_by_length(texts: Sequence[Sequence[int]], max_tokens: int) -> list[list[int]]:
    """Put texts of similar length together, the longest first, and tell which they are.

    A text alone makes a group, whatever its length.
    """
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    groups: list[list[int]] = []
    for row in order:
        # The first of a group is its longest; each begins with one more token.
        if not groups or (len(groups[-1]) + 1) * (len(texts[groups[-1][0]]) + 1) > max_tokens:
            groups.append([])
        groups[-1].append(row)
    return groups
