"""The encoder that only looks tokens up: the reading is left to the decoder."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from regard.core.config import Config, Positive
from regard.core.module import Embedding
from regard.core.specs import TextSpec
from regard.models.interfaces import Memory, TokenEncoder, masked_mean


@dataclass(frozen=True, kw_only=True)
class EmbeddingEncoderConfig(Config):
    """Embeddings and nothing else."""

    kind: Literal["embedding"] = "embedding"
    """What kind of encoder this is."""
    dim: Positive = 256
    """Width of the embeddings."""


class EmbeddingEncoder(TokenEncoder):
    """Hands the embeddings of the source over, each blind to the others."""

    def __init__(self, config: EmbeddingEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.embedding = Embedding(spec.vocab_size, config.dim)
        self.scale = config.dim**0.5

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Look the source up, token ids (B, S), and return its `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        states = self.embedding(values) * self.scale  # (B, S, D)
        return Memory(states=states, mask=mask, summary=masked_mean(states, mask), tokens=values)
