"""Training data of language models: a text as one stream of token ids, and windows of it."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.data.batching import PlannedBatches, Rows
from regard.data.text.field import tokenizer_file
from regard.data.text.tokenizers import Tokenizer, split_at
from regard.data.token_ids import Flat

Ids = NDArray[np.int32]
"""Token ids of a text."""


class StreamField:
    """Field of one stream of token ids for all lines of a text.

    Bytes encode the text exactly, with its line ends. Every other tokenizer strips whitespace at
    line ends, so the end token stands for a line end, and an empty line is one end token.

    Args:
        tokenizer: Tokenizer of the lines.
        is_exact: Whether the tokenizer encodes line ends, as bytes do.
    """

    def __init__(self, tokenizer: Tokenizer, *, is_exact: bool) -> None:
        self.tokenizer = tokenizer
        self.is_exact = is_exact
        self.line_end = tokenizer.encode("\n")[0] if is_exact else tokenizer.eos
        """Token between lines, and before the first token of a text."""

    @property
    def size(self) -> int:
        """Vocabulary size."""
        return self.tokenizer.vocab_size

    @property
    def digest(self) -> str:
        """Checksum of the encoding; fields with the same one encode every line equally."""
        return f"{type(self).__name__} {self.is_exact} {self.tokenizer.digest}"

    def read(self, text: str) -> list[int]:
        """Encode a text as token ids, without the line end before it."""
        return self.read_all([text])[0]

    def read_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Encode lines as token ids, each with its line end if it has one."""
        encoded = self.tokenizer.encode_batch(list(lines))
        if self.is_exact:
            return encoded
        return [
            [*ids, *[self.line_end] * line.endswith("\n")]
            for ids, line in zip(encoded, lines, strict=True)
        ]

    def stream(self, lines: Sequence[str]) -> Ids:
        """Encode a text as one array of ids that starts with a line end.

        So every token of the text, the first included, is predicted from a previous token.
        """
        ids = chain([self.line_end], *self.read_all(lines))
        return np.fromiter(ids, np.int32)

    def stack(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Return token ids (B, T) of texts with a line end before and padding after each."""
        longest = max(map(len, texts))
        pad = self.tokenizer.pad
        return torch.tensor(
            [[self.line_end, *text, *[pad] * (longest - len(text))] for text in texts]
        )

    def save(self, folder: Path, name: str) -> None:
        """Write the vocabulary into a run folder, under the name of the field."""
        self.tokenizer.save(folder / tokenizer_file(name))

    def write(self, ids: Iterable[int]) -> str:
        """Decode token ids as text; an end token is a line end."""
        lines = split_at(ids, self.tokenizer.eos)
        return "\n".join(self.tokenizer.decode(line) for line in lines)


@dataclass(frozen=True, slots=True)
class WindowBatch:
    """Windows of a text, all of one length."""

    tokens: Tensor
    """(B, T) token ids; all but the last are inputs, all but the first are targets."""

    @property
    def num_target_tokens(self) -> int:
        """Number of positions in the loss."""
        return self.tokens.shape[0] * (self.tokens.shape[1] - 1)

    def to(self, device: torch.device) -> "WindowBatch":
        """Return the batch on a device."""
        return WindowBatch(self.tokens.to(device, non_blocking=True))

    @property
    def rows(self) -> range:
        """Indexes of the windows in the batch."""
        return range(len(self.tokens))

    def split(self, num_parts: int) -> "list[WindowBatch]":
        """Split by windows into at most `num_parts` batches of about the same size."""
        return [WindowBatch(part) for part in self.tokens.chunk(num_parts)]


@dataclass(eq=False, repr=False)
class Windows(PlannedBatches[WindowBatch]):
    """Windows of a text; their starts and order depend only on the seed and the epoch.

    The first window starts at another position in every epoch, so that no token is always at the
    start of a window, without context.
    """

    ids: Flat
    """Token ids of the text."""
    _: KW_ONLY
    window: int
    """Number of predicted tokens in a window."""
    num_windows: int
    """Number of windows in a batch."""
    seed: int = 0
    """Random seed of starts and order."""
    is_pinned: bool = False
    """Whether tensors are in pinned memory, for asynchronous copies to a GPU."""

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
        """Return the starts of the windows of each batch of an epoch."""
        generator = np.random.default_rng([self.seed, number])
        # A window needs one more token than it predicts, and at least one window must fit.
        spare = len(self.ids) - 1 - self.window
        first = int(generator.integers(min(self.window, spare + 1)))
        num = (len(self.ids) - 1 - first) // self.window
        starts = generator.permutation(num) * self.window + first
        return [starts[row : row + self.num_windows] for row in range(0, num, self.num_windows)]

    def stack(self, rows: Rows, number: int) -> WindowBatch:
        """Return the windows that start at `rows`."""
        windows = [self.ids[start : start + self.window + 1] for start in rows.tolist()]
        tokens = torch.from_numpy(np.stack(windows).astype(np.int64))  # (B, T)
        return WindowBatch(tokens.pin_memory() if self.is_pinned else tokens)


def group_by_length(texts: Sequence[Sequence[int]], max_tokens: int) -> list[list[int]]:
    """Group texts of similar length, the longest first, and return the indexes of each group.

    A group may exceed `max_tokens` only if it has a single text.
    """
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    groups: list[list[int]] = []
    for row in order:
        # The first text of a group is its longest; each text gets one start token.
        if not groups or (len(groups[-1]) + 1) * (len(texts[groups[-1][0]]) + 1) > max_tokens:
            groups.append([])
        groups[-1].append(row)
    return groups
