"""Embedding encoder: token embeddings without context, for decoder-only models."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from regard.core.config import Config, Positive
from regard.core.module import Embedding
from regard.core.specs import TextSpec
from regard.models.interfaces import Memory, TokenEncoder, masked_mean


@dataclass(frozen=True, kw_only=True)
class EmbeddingEncoderConfig(Config):
    """Hyperparameters of the encoder."""

    kind: Literal["embedding"] = "embedding"
    """Kind of encoder."""
    dim: Positive = 256
    """Width of the embeddings."""


class EmbeddingEncoder(TokenEncoder):
    """Encoder that returns the token embeddings of the source."""

    def __init__(self, config: EmbeddingEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.embedding = Embedding(spec.vocab_size, config.dim)
        self.scale = config.dim**0.5

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Embed token ids (B, S) into a `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        states = self.embedding(values) * self.scale  # (B, S, D)
        return Memory(states=states, mask=mask, summary=masked_mean(states, mask), tokens=values)
