"""The masked language model: an encoder that tells what was hidden from it."""

from dataclasses import dataclass, field
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from regard.core.config import AtLeast, Config
from regard.core.module import Embedding, Linear, Module
from regard.core.specs import TextSpec
from regard.models.encoders import check_unpooled
from regard.models.encoders.bert import BertEncoderConfig
from regard.models.encoders.tables import TEXT_ENCODERS, TokenEncoderConfig
from regard.models.init import InitConfig, initialise
from regard.models.interfaces import Memory
from regard.models.layers import EPSILON

MAX_SPAN = 20
"""Places within a hidden span that the boundary head can tell apart."""

PLACE_DIM = 200
"""Width of what tells these places (Joshi et al. 2020)."""


@dataclass(frozen=True, kw_only=True)
class MaskedModelConfig(Config):
    """An encoder with a head that tells hidden tokens, and further heads where they have weight."""

    encoder: TokenEncoderConfig = field(default_factory=BertEncoderConfig)
    """What reads the text."""
    init: InitConfig = field(
        default_factory=lambda: InitConfig(rule="normal", embedding="normal", scale=0.02)
    )
    """How the weights start."""
    next_sentence: Annotated[float, AtLeast(0)] = 0.0
    """Weight of telling whether two texts belong together; 0 = no head for it."""
    boundary: Annotated[float, AtLeast(0)] = 0.0
    """Weight of telling a hidden span from its two neighbours alone; 0 = no head for it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unpooled(self.encoder, "where every token is told")


class MaskedHead(Module):
    """States → logits: dense, GELU, norm, and the tokens' own embeddings (Devlin et al. 2019).

    Args:
        dim: Width of the states.
        embedding: What tokens are looked up in; its matrix is also the output layer.
        norm_epsilon: What the norm adds to the variance.
    """

    def __init__(self, dim: int, embedding: Embedding, *, norm_epsilon: float = EPSILON) -> None:
        super().__init__()
        self.dense = Linear(dim, embedding.embedding_dim)
        self.norm = nn.LayerNorm(embedding.embedding_dim, norm_epsilon)
        self.output = Linear(embedding.embedding_dim, embedding.num_embeddings)
        self.output.weight = embedding.weight

    def forward(self, states: Tensor) -> Tensor:
        """Tell the tokens behind states (..., D): logits (..., V)."""
        return self.output(self.norm(gelu(self.dense(states))))


class NextSentenceHead(Module):
    """Do two texts belong together? Told from the first state (Devlin et al. 2019, task 2)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.pooler = Linear(dim, dim)
        self.output = Linear(dim, 2)

    def forward(self, states: Tensor) -> Tensor:
        """Judge texts by their states (B, S, D): logits (B, 2), the second for yes."""
        return self.output(torch.tanh(self.pooler(states[:, 0])))


class BoundaryHead(Module):
    """Tells a hidden token from the two states beside its span (Joshi et al. 2020, section 3.2).

    Args:
        dim: Width of the states.
        embedding: What tokens are looked up in; its matrix is also the output layer.
    """

    def __init__(self, dim: int, embedding: Embedding) -> None:
        super().__init__()
        self.place_embedding = Embedding(MAX_SPAN, PLACE_DIM)
        self.first = Linear(2 * dim + PLACE_DIM, dim)
        self.first_norm = nn.LayerNorm(dim)
        self.second = Linear(dim, embedding.embedding_dim)
        self.second_norm = nn.LayerNorm(embedding.embedding_dim)
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))

    def forward(self, states: Tensor, hidden: Tensor, embedding: Embedding) -> Tensor:
        """Tell every hidden token.

        Args:
            states: (B, S, D).
            hidden: (L,), the hidden positions in all texts laid end to end, in order.
            embedding: The same as at the beginning.

        Returns:
            Logits (L, V).
        """
        left, right, place = find_boundaries(hidden)
        flat = states.flatten(0, 1)  # (B·S, D)
        told = self.place_embedding(place.clamp(max=MAX_SPAN - 1)).to(flat.dtype)
        inputs = torch.cat([flat[left], flat[right], told], dim=-1)  # (L, C)
        middle = self.first_norm(gelu(self.first(inputs)))
        return linear(self.second_norm(gelu(self.second(middle))), embedding.weight, self.bias)


def find_boundaries(hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find the span that each hidden position belongs to: a run without a gap.

    A text's first and last token are never hidden, so no span reaches into the next text.

    Args:
        hidden: (L,), positions in all texts laid end to end, in order.

    Returns:
        The position before the span, the one after it, and the place within it, each (L,).
    """
    index = torch.arange(len(hidden), device=hidden.device)
    is_first = hidden.diff(prepend=hidden[:1] - 2) != 1
    is_last = hidden.diff(append=hidden[-1:] + 2) != 1
    first = torch.where(is_first, index, 0).cummax(0).values
    last = torch.where(is_last, index, len(hidden)).flip(0).cummin(0).values.flip(0)
    return hidden[first] - 1, hidden[last] + 1, index - first


class MaskedModel(Module):
    """Any encoder with a head that tells hidden tokens."""

    def __init__(self, config: MaskedModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.encoder = TEXT_ENCODERS[type(config.encoder)](config.encoder, TextSpec(vocab_size))
        dim, embedding = self.encoder.memory_dim, self.encoder.embedding
        epsilon = getattr(config.encoder, "norm_epsilon", EPSILON)
        self.head = MaskedHead(dim, embedding, norm_epsilon=epsilon)
        self.next_sentence = NextSentenceHead(dim) if config.next_sentence else None
        self.boundary = BoundaryHead(dim, embedding) if config.boundary else None
        initialise(self, config.init)

    def encode(self, values: Tensor, mask: Tensor) -> Memory:
        """Read texts, token ids (B, S); True in the mask (B, S) = a real position."""
        return self.encoder(values, mask)

    def tell(self, states: Tensor, hidden: Tensor) -> Tensor:
        """Tell the tokens at some positions only: the vocabulary is what takes time.

        Args:
            states: (B, S, D).
            hidden: (L,), positions in all texts laid end to end.

        Returns:
            Logits (L, V).
        """
        return self.head(states.flatten(0, 1).index_select(0, hidden))

    def tell_from_boundaries(self, states: Tensor, hidden: Tensor) -> Tensor:
        """Tell hidden tokens from what stands beside their spans, likewise."""
        assert self.boundary is not None
        return self.boundary(states, hidden, self.encoder.embedding)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Tell the token at every position of texts (B, S): logits (B, S, V)."""
        return self.head(self.encode(values, mask).states)
