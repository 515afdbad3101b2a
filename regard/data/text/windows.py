"""A text as one stream of token ids, and windows of it: what a language model learns from."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.data.text.field import tokenizer_file
from regard.data.text.tokenizers import Tokenizer, split_at

Ids = np.ndarray[tuple[int], np.dtype[np.int32]]
"""The token ids of a whole text."""


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

    def save(self, folder: Path, name: str) -> None:
        """Write the vocabulary of the field of this name into a run folder."""
        self.tokenizer.save(folder / tokenizer_file(name))

    def write(self, ids: Iterable[int]) -> str:
        """Turn token ids into text; an end token is a line end."""
        lines = split_at(ids, self.tokenizer.eos)
        return "\n".join(self.tokenizer.decode(line) for line in lines)


@dataclass(frozen=True, slots=True)
class WindowBatch:
    """Windows of a text, all of one length."""

    tokens: Tensor
    """(B, T) token ids; all but the last are read, all but the first are predicted."""

    @property
    def num_target_tokens(self) -> int:
        """Number of positions a loss is taken over."""
        return self.tokens.shape[0] * (self.tokens.shape[1] - 1)

    def to(self, device: torch.device) -> "WindowBatch":
        """Return the batch on a device."""
        return WindowBatch(self.tokens.to(device, non_blocking=True))


class Windows:
    """A text cut into windows; their starts and order depend on seed and epoch alone.

    Every epoch begins the first window at another position, so that no token always stands at the
    edge, where there is nothing before it.
    """

    def __init__(
        self, ids: Ids, *, window: int, num_windows: int, seed: int = 0, is_pinned: bool = False
    ) -> None:
        """Prepare windows.

        Args:
            ids: The text.
            window: How many tokens are predicted in each.
            num_windows: How many make a batch.
            seed: Another seed is another order.
            is_pinned: Whether tensors are put where a GPU fetches them without waiting.
        """
        at_least("window", window, 1)
        at_least("num_windows", num_windows, 1)
        at_least("seed", seed, 0)
        if len(ids) < window + 1:
            raise DataError(
                f"A text must be longer than a window of {window:,} tokens, but has "
                f"{len(ids):,}. Give more text, or lower `data.window`."
            )
        self._ids = ids
        self._window = window
        self._num_windows = num_windows
        self._seed = seed
        self._is_pinned = is_pinned

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[WindowBatch]:
        """Give the batches of an epoch.

        Args:
            number: Epochs are counted from 0.
            skip: How many batches were seen before an interruption; they are not built again.
        """
        starts = self._starts(number)
        for first in range(skip * self._num_windows, len(starts), self._num_windows):
            yield self._cut(starts[first : first + self._num_windows])

    def num_batches(self, number: int) -> int:
        """Return how many batches an epoch has."""
        return -(-len(self._starts(number)) // self._num_windows)

    def _starts(self, number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return where the windows of an epoch begin, in its order."""
        generator = np.random.default_rng([self._seed, number])
        # One token more than a window is read, and at least one window must fit.
        spare = len(self._ids) - 1 - self._window
        first = int(generator.integers(min(self._window, spare + 1)))
        num = (len(self._ids) - 1 - first) // self._window
        return generator.permutation(num) * self._window + first

    def _cut(self, starts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> WindowBatch:
        positions = starts[:, None] + np.arange(self._window + 1)
        tokens = torch.from_numpy(self._ids[positions].astype(np.int64))  # (B, T)
        return WindowBatch(tokens.pin_memory() if self._is_pinned else tokens)


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
