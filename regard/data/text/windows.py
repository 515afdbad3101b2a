"""A text as one stream of token ids, and windows of it: what a language model learns from."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.data.batching import PlannedBatches, Rows
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


@dataclass(eq=False, repr=False)
class Windows(PlannedBatches[WindowBatch]):
    """A text cut into windows; their starts and order depend on seed and epoch alone.

    Every epoch begins the first window at another position, so that no token always stands at the
    edge, where there is nothing before it.
    """

    ids: Ids
    """The text."""
    _: KW_ONLY
    window: int
    """How many tokens are predicted in each."""
    num_windows: int
    """How many make a batch."""
    seed: int = 0
    """Another seed is another order."""
    is_pinned: bool = False
    """Whether tensors are put where a GPU fetches them without waiting."""

    def __post_init__(self) -> None:
        at_least("window", self.window, 1)
        at_least("num_windows", self.num_windows, 1)
        at_least("seed", self.seed, 0)
        if len(self.ids) < self.window + 1:
            raise DataError(
                f"A text must be longer than a window of {self.window:,} tokens, but has "
                f"{len(self.ids):,}. Give more text, or lower `data.window`."
            )

    def plan(self, number: int) -> list[Rows]:
        """Return where the windows of each batch begin, in the order of an epoch."""
        generator = np.random.default_rng([self.seed, number])
        # One token more than a window is read, and at least one window must fit.
        spare = len(self.ids) - 1 - self.window
        first = int(generator.integers(min(self.window, spare + 1)))
        num = (len(self.ids) - 1 - first) // self.window
        starts = generator.permutation(num) * self.window + first
        return [starts[row : row + self.num_windows] for row in range(0, num, self.num_windows)]

    def stack(self, rows: Rows, number: int) -> WindowBatch:
        """Return the windows that begin at `rows`."""
        positions = rows[:, None] + np.arange(self.window + 1)
        tokens = torch.from_numpy(self.ids[positions].astype(np.int64))  # (B, T)
        return WindowBatch(tokens.pin_memory() if self.is_pinned else tokens)


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
