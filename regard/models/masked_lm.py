"""Masked language model: an encoder with heads for masked tokens and further objectives."""

from dataclasses import dataclass, field
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from regard.core.config import AtLeast, Config
from regard.core.module import Embedding, Linear, Module
from regard.core.native.linear import linear
from regard.core.specs import TextSpec
from regard.models.encoders import check_unpooled
from regard.models.encoders.bert import BertEncoderConfig
from regard.models.encoders.tables import TEXT_ENCODERS, TokenEncoderConfig
from regard.models.init import InitConfig, initialize
from regard.models.interfaces import Memory
from regard.models.layers import EPSILON

MAX_SPAN = 20
"""Number of position embeddings within a masked span in the boundary head."""

POSITION_DIM = 200
"""Width of these position embeddings (Joshi et al. 2020)."""


@dataclass(frozen=True, kw_only=True)
class MaskedModelConfig(Config):
    """Hyperparameters of a masked language model."""

    encoder: TokenEncoderConfig = field(default_factory=BertEncoderConfig)
    """Encoder of the text."""
    init: InitConfig = field(
        default_factory=lambda: InitConfig(rule="normal", embedding="normal", scale=0.02)
    )
    """Weight initialisation."""
    next_sentence: Annotated[float, AtLeast(0)] = 0.0
    """Weight of the next-sentence loss; 0 = no head for it."""
    boundary: Annotated[float, AtLeast(0)] = 0.0
    """Weight of the span boundary loss; 0 = no head for it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unpooled(self.encoder, "in a masked language model")


class MaskedHead(Module):
    """Head for masked tokens: linear, GELU, norm, tied output layer (Devlin et al. 2019).

    Args:
        dim: Width of the states.
        embedding: Token embedding, whose weights are also those of the output layer.
        norm_epsilon: Epsilon of the norm.
    """

    def __init__(self, dim: int, embedding: Embedding, *, norm_epsilon: float = EPSILON) -> None:
        super().__init__()
        self.dense = Linear(dim, embedding.embedding_dim)
        self.norm = nn.LayerNorm(embedding.embedding_dim, norm_epsilon)
        self.output = Linear(embedding.embedding_dim, embedding.num_embeddings)
        self.output.weight = embedding.weight

    def forward(self, states: Tensor) -> Tensor:
        """Return the logits (..., V) of states (..., D)."""
        return self.output(self.norm(gelu(self.dense(states))))


class NextSentenceHead(Module):
    """Next-sentence prediction from the first state (Devlin et al. 2019, task 2)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.pooler = Linear(dim, dim)
        self.output = Linear(dim, 2)

    def forward(self, states: Tensor) -> Tensor:
        """Return logits (B, 2) of states (B, S, D); class 1 = the second text follows the first."""
        return self.output(torch.tanh(self.pooler(states[:, 0])))


class BoundaryHead(Module):
    """Span boundary objective: masked tokens from the states beside the span (Joshi et al. 2020).

    Args:
        dim: Width of the states.
        embedding: Token embedding, whose weights are also those of the output layer.
    """

    def __init__(self, dim: int, embedding: Embedding) -> None:
        super().__init__()
        self.place_embedding = Embedding(MAX_SPAN, POSITION_DIM)
        self.first = Linear(2 * dim + POSITION_DIM, dim)
        self.first_norm = nn.LayerNorm(dim)
        self.second = Linear(dim, embedding.embedding_dim)
        self.second_norm = nn.LayerNorm(embedding.embedding_dim)
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))

    def forward(self, states: Tensor, hidden: Tensor, embedding: Embedding) -> Tensor:
        """Predict the masked tokens.

        Args:
            states: (B, S, D).
            hidden: (L,), masked positions in the flattened batch (B·S,), in ascending order.
            embedding: The token embedding.

        Returns:
            Logits (L, V).
        """
        left, right, position = find_boundaries(hidden)
        flat = states.flatten(0, 1)  # (B·S, D)
        positions = self.place_embedding(position.clamp(max=MAX_SPAN - 1)).to(flat.dtype)
        inputs = torch.cat([flat[left], flat[right], positions], dim=-1)  # (L, C)
        projected = self.first_norm(gelu(self.first(inputs)))
        return linear(self.second_norm(gelu(self.second(projected))), embedding.weight, self.bias)


def find_boundaries(hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find the span of consecutive masked positions that each masked position belongs to.

    The first and last token of a text are never masked, so a span never crosses two texts.

    Args:
        hidden: (L,), masked positions in the flattened batch (B·S,), in ascending order.

    Returns:
        The position before the span, the position after it, and the offset within it, each (L,).
    """
    index = torch.arange(len(hidden), device=hidden.device)
    is_first = hidden.diff(prepend=hidden[:1] - 2) != 1
    is_last = hidden.diff(append=hidden[-1:] + 2) != 1
    first = torch.where(is_first, index, 0).cummax(0).values
    last = torch.where(is_last, index, len(hidden)).flip(0).cummin(0).values.flip(0)
    return hidden[first] - 1, hidden[last] + 1, index - first


class MaskedModel(Module):
    """Masked language model with any text encoder."""

    def __init__(self, config: MaskedModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.encoder = TEXT_ENCODERS[type(config.encoder)](config.encoder, TextSpec(vocab_size))
        dim, embedding = self.encoder.memory_dim, self.encoder.embedding
        epsilon = getattr(config.encoder, "norm_epsilon", EPSILON)
        self.head = MaskedHead(dim, embedding, norm_epsilon=epsilon)
        self.next_sentence = NextSentenceHead(dim) if config.next_sentence else None
        self.boundary = BoundaryHead(dim, embedding) if config.boundary else None
        initialize(self, config.init)

    def encode(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode token ids (B, S) with the mask (B, S), True = a real position."""
        return self.encoder(values, mask)

    def predict(self, states: Tensor, hidden: Tensor) -> Tensor:
        """Predict the tokens at masked positions only, since the output layer is expensive.

        Args:
            states: (B, S, D).
            hidden: (L,), masked positions in the flattened batch (B·S,).

        Returns:
            Logits (L, V).
        """
        return self.head(states.flatten(0, 1).index_select(0, hidden))

    def predict_from_boundaries(self, states: Tensor, hidden: Tensor) -> Tensor:
        """Predict masked tokens from the states beside their spans: logits (L, V)."""
        assert self.boundary is not None
        return self.boundary(states, hidden, self.encoder.embedding)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Predict the token at every position of texts (B, S): logits (B, S, V)."""
        return self.head(self.encode(values, mask).states)
