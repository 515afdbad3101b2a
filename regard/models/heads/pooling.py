"""Pooling of encoder states into one vector."""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention.pooling import AttentionPooling, average_pool, max_pool
from regard.attention.scores import DotScore, ScaledDotScore
from regard.core.errors import ConfigError
from regard.core.module import Linear, Module
from regard.models.interfaces import Memory

PoolingKind = Literal["first", "summary", "mean", "max", "attention", "aligned"]


class Pooling(Module, ABC):
    """Base class of poolings: `Memory` → one vector.

    Args:
        dim: Width of the states.
        separator: The token that ends a text.
    """

    def __init__(self, dim: int, separator: int = 3) -> None:
        super().__init__()
        self.dim = dim
        self.separator = separator

    @abstractmethod
    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""


class FirstPooling(Pooling):
    """State of the first token (Devlin et al. 2019)."""

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        return memory.states[:, 0]


class SummaryPooling(Pooling):
    """Summary of the encoder, such as the last state of a recurrent encoder."""

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        return memory.summary


class FinalPooling(Pooling):
    """Final states of all layers of a recurrent encoder: h and, for an LSTM, c.

    Sutskever et al. 2014 initialise the decoder with all of them: four layers of 1,000 cells
    represent a sentence by 8,000 numbers.
    """

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, N·D), layer by layer."""
        if memory.final is None:
            raise ConfigError(
                "`pooling` 'final' needs a recurrent encoder, whose layers have final states, but "
                "this encoder has none. Use 'summary' or 'mean'."
            )
        return torch.cat([part for layer in memory.final for part in layer], dim=-1)


class MeanPooling(Pooling):
    """Mean over the real positions."""

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        return average_pool(memory.states, memory.mask)


class MaxPooling(Pooling):
    """Maximum over the real positions, per column (Kim 2014)."""

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        return max_pool(memory.states, memory.mask)


class WeightedPooling(Pooling):
    """Attention pooling with a learned query (Yang et al. 2016, eq. 5-7)."""

    def __init__(self, dim: int, separator: int = 3) -> None:
        super().__init__(dim, separator)
        self.key_map = Linear(dim, dim)
        self.query = nn.Parameter(torch.empty(1, dim).normal_().div_(dim**0.5))  # (1, D)
        self.attention = AttentionPooling(DotScore(dim, dim))

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        keys = self.key_map(memory.states).tanh()
        values = memory.states if memory.values is None else memory.values
        query = self.query.to(keys.dtype)
        return self.attention(query, keys, values, mask=memory.mask[:, None])[0][:, 0]  # (B, D)


class AlignedPooling(Pooling):
    """Comparison of two texts: each word is compared with its soft alignment in the other text.

    Parikh et al. 2016, eq. 1-5, with the comparison of Chen et al. 2017, eq. 14-15. For a single
    text the alignment is zero.
    """

    def __init__(self, dim: int, separator: int = 3) -> None:
        super().__init__(dim, separator)
        self.attention = AttentionPooling(ScaledDotScore(dim, dim))
        self.compare = Linear(4 * dim, dim)
        self.join = Linear(4 * dim, dim)

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        states, is_second = memory.states, self.is_second(memory)
        others = is_second[:, :, None] != is_second[:, None]  # (B, S, S)
        aligned, _ = self.attention(states, states, states, mask=others & memory.mask[:, None])
        parts = [states, aligned, states - aligned, states * aligned]
        compared = self.compare(torch.cat(parts, dim=-1)).relu()  # (B, S, D)
        pooled = []
        for side in (memory.mask & ~is_second, memory.mask & is_second):
            # After the ReLU no value is negative, so zeros do not change the maximum.
            pooled += [average_pool(compared, side), (compared * side[..., None]).amax(1)]
        return self.join(torch.cat(pooled, dim=-1)).tanh()  # (B, D)

    def is_second(self, memory: Memory) -> Tensor:
        """Return the mask (B, S) of the positions of the second text."""
        assert memory.tokens is not None
        ends = (memory.tokens == self.separator).long()
        return ends.cumsum(1) - ends > 0  # (B, S)


POOLINGS: dict[str, type[Pooling]] = {
    "first": FirstPooling,
    "summary": SummaryPooling,
    "mean": MeanPooling,
    "max": MaxPooling,
    "attention": WeightedPooling,
    "aligned": AlignedPooling,
}
"""Poolings by name."""
