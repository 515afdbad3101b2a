"""Windows cut from one long text: what a language model learns from."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.errors import DataError

Ids = np.ndarray[tuple[int], np.dtype[np.int32]]
"""The token ids of a whole text."""


@dataclass(frozen=True, slots=True)
class WindowBatch:
    """Windows of a text, all of one length."""

    tokens: Tensor
    """(B, T) token ids; all but the last are read, all but the first are foretold."""

    @property
    def num_target_tokens(self) -> int:
        """Number of positions a loss is taken over."""
        return self.tokens.shape[0] * (self.tokens.shape[1] - 1)

    def to(self, device: torch.device) -> "WindowBatch":
        """Return the batch on a device."""
        return WindowBatch(self.tokens.to(device, non_blocking=True))


class Windows:
    """A text cut into windows; where and in which order hangs on seed and epoch alone.

    Every epoch begins the first window at another place, so that no token always stands at the
    edge, where there is nothing before it.
    """

    def __init__(
        self, ids: Ids, *, window: int, num_windows: int, seed: int = 0, is_pinned: bool = False
    ) -> None:
        """Prepare windows.

        Args:
            ids: The text.
            window: How many tokens are foretold in each.
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
        places = starts[:, None] + np.arange(self._window + 1)
        tokens = torch.from_numpy(self._ids[places].astype(np.int64))  # (B, T)
        return WindowBatch(tokens.pin_memory() if self._is_pinned else tokens)
