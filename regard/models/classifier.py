"""A classifier: any encoder reads, a pooling makes one vector of what it read, a layer decides."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from regard.attention.pooling import AttentionPooling, average_pool, max_pool
from regard.attention.scores import DotScore
from regard.core.config import within
from regard.core.tables import pick
from regard.models.encoders import ENCODERS, EncoderConfig, TransformerEncoderConfig
from regard.models.init import InitConfig, initialise
from regard.models.interfaces import Encoder, Memory

PoolingKind = Literal["first", "summary", "mean", "max", "attention"]


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig:
    """An encoder with a decision on top."""

    encoder: EncoderConfig = field(default_factory=TransformerEncoderConfig)
    """What reads the text."""
    pooling: PoolingKind = "mean"
    """What becomes of the states: the first, the encoder's own summary, the mean, the maximum, or
    a mean weighted by attention."""
    has_hidden: bool = False
    """Whether a layer with tanh stands between pooling and decision, as in BERT."""
    dropout: float = 0.1
    """Dropout on the pooled states."""
    init: InitConfig = field(default_factory=InitConfig)
    """How the weights start."""

    def __post_init__(self) -> None:
        within("dropout", self.dropout, low=0.0, high=0.99)


class Pooling(nn.Module, ABC):
    """Makes one vector of a `Memory`.

    Args:
        dim: Width of the states.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    @abstractmethod
    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""

    if TYPE_CHECKING:
        __call__ = forward


class FirstPooling(Pooling):
    """The state of the first token, which stands for the whole text (Devlin et al. 2019)."""

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        return memory.states[:, 0]


class SummaryPooling(Pooling):
    """What the encoder itself takes for its fixed context; a recurrent one's last state."""

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        return memory.summary


class MeanPooling(Pooling):
    """The mean of the real positions."""

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        return average_pool(memory.states, memory.mask)


class MaxPooling(Pooling):
    """The largest value of the real positions, for each column (Kim 2014)."""

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        return max_pool(memory.states, memory.mask)


class WeightedPooling(Pooling):
    """A mean weighted by attention: a learned query asks which words matter.

    Yang et al. 2016, eq. 5-7.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.key_map = nn.Linear(dim, dim)
        self.query = nn.Parameter(torch.randn(1, dim) / dim**0.5)  # (1, D)
        self.attention = AttentionPooling(DotScore(dim, dim))

    def forward(self, memory: Memory) -> Tensor:
        """Return (B, D)."""
        keys = self.key_map(memory.states).tanh()
        values = memory.states if memory.values is None else memory.values
        query = self.query.to(keys.dtype)
        pooled: Tensor = self.attention(query, keys, values, mask=memory.mask[:, None])[0]
        return pooled[:, 0]  # (B, D)


POOLINGS: dict[str, type[Pooling]] = {
    "first": FirstPooling,
    "summary": SummaryPooling,
    "mean": MeanPooling,
    "max": MaxPooling,
    "attention": WeightedPooling,
}
"""The poolings by their names."""


class Classifier(nn.Module):
    """Says how likely each label is for a text.

    Args:
        config: The settings.
        vocab_size: Number of tokens.
        num_labels: Number of labels.
    """

    encoder: Encoder

    def __init__(self, config: ClassifierConfig, vocab_size: int, num_labels: int) -> None:
        super().__init__()
        self.encoder = ENCODERS[type(config.encoder)](config.encoder, vocab_size)
        dim = self.encoder.memory_dim
        self.pooling = pick(POOLINGS, config.pooling, "pooling")(dim)
        self.hidden = nn.Linear(dim, dim) if config.has_hidden else None
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(dim, num_labels)
        initialise(self, config.init)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return a logit for each label, (B, V), the labels being the vocabulary.

        Args:
            values: (B, S) token ids.
            mask: (B, S), True = a real position; it may still lie on the host.
        """
        pooled = self.pooling(self.encoder(values, mask))
        if self.hidden is not None:
            pooled = self.hidden(pooled).tanh()
        logits: Tensor = self.output(self.dropout(pooled))  # (B, V)
        return logits

    if TYPE_CHECKING:
        __call__ = forward
