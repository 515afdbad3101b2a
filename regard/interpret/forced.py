"""Log-probabilities of a given output as a function of the inputs of a model, by forced decoding.

The inputs are the source and, for models that generate, the earlier tokens of the output itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from regard.interpret.sources import SourcePart
from regard.search.watching import check_watch

MAX_POSITIONS, MAX_LOGITS = 4096, 2**23
"""Maximum numbers of input positions and of logits that are computed at once, which bound the
memory."""


class ForcedPass(ABC):
    """One source with a given output of T tokens: the log-probability of each of its tokens.

    Log-probabilities are a function of S parts of the source and of the T earlier tokens of the
    output, the prefix. Column k of a prefix stands for token k as an input of the later tokens.
    """

    source: SourcePart
    ids: tuple[int, ...]
    """The output as token ids, or the index of a label."""
    text: str
    """The output as text."""
    target_names: tuple[str, ...]
    """The tokens of the output, T of them."""
    num_classes: int
    """Number of tokens or labels that each output is chosen from."""
    prefix_is_free: Tensor
    """(T,), False = a token that is never left out: a start or end token, and the last one."""
    prefix_values: Tensor
    """(T, D), embeddings of the prefix; (T, 0) if the output is no input."""
    prefix_baseline: Tensor
    """(T, D), the baseline of the prefix."""

    @abstractmethod
    def log_probs_of(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return log-probabilities (B, T), with gradients.

        Args:
            source: (B, ...), in place of `source.values`.
            prefix: (B, T, D), in place of `prefix_values`.
        """

    @abstractmethod
    def log_probs_without(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return the log-probability of each token if inputs are left out, (B, T).

        Args:
            source: (B, S), False = a part of the source that is left out.
            prefix: (B, T), False = an earlier token that is left out.
        """

    @abstractmethod
    def attention(self) -> tuple[Tensor, Tensor]:
        """Return attention weights, the mean of layers and heads, over source and prefix.

        Returns:
            Weights (T, S) and (T, T). Weights on the prefix are zero if the decoder does not attend
            to it.
        """

    @property
    def num_outputs(self) -> int:
        """Number of tokens of the output."""
        return len(self.target_names)

    @property
    def num_positions(self) -> int:
        """Number of positions of one row, which memory grows with."""
        return self.source.num_positions + self.num_outputs

    def log_probs(self) -> Tensor:
        """Return the log-probability of each token, (T,)."""
        kept = torch.ones_like(self.source.is_free), torch.ones_like(self.prefix_is_free)
        return self.log_probs_without(kept[0][None], kept[1][None])[0]

    def log_probs_without_each(self, kept: Tensor) -> Tensor:
        """Return log-probabilities (B, T) without some inputs, computed in chunks.

        Args:
            kept: (B, S + T), False = a part of the source or an earlier token that is left out.
        """
        source, prefix = kept[:, : len(self.source.names)], kept[:, len(self.source.names) :]
        parts = [
            self.log_probs_without(source[rows], prefix[rows]) for rows in self.chunks(len(kept))
        ]
        return torch.cat(parts) if parts else kept.new_zeros(0, self.num_outputs, dtype=torch.float)

    def chunks(self, num_rows: int) -> Iterator[slice]:
        """Yield slices of rows that are computed at once; a watching function may end this."""
        num_logits = self.num_outputs * self.num_classes
        size = max(1, min(MAX_POSITIONS // self.num_positions, MAX_LOGITS // num_logits))
        for first in range(0, num_rows, size):
            check_watch()
            yield slice(first, first + size)


def shift_back(rows: Tensor) -> Tensor:
    """Return rows (T, ...) from the second on, followed by zeros."""
    return torch.cat([rows[1:], torch.zeros_like(rows[:1])])


def is_not_last(ids: Tensor) -> Tensor:
    """Return a mask (T,) that is False at the last token, which is no input."""
    return torch.arange(len(ids), device=ids.device) < len(ids) - 1


def take_rows(logits: Tensor, rows: Tensor) -> Tensor:
    """Select positions (B, T) of logits (B, L, V)."""
    return logits.gather(1, rows[..., None].expand(-1, -1, logits.shape[-1]))
