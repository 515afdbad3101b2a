"""Encoder of stories: one vector per sentence, and self-attention over the sentences."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.config import NonNegative, Positive
from regard.core.module import Embedding
from regard.core.specs import TextSpec
from regard.models.encoders.bert import segment
from regard.models.interfaces import Memory, TokenEncoder
from regard.models.transformer import PositionedStack, TransformerConfig, build_positions


@dataclass(frozen=True, kw_only=True)
class SentencesEncoderConfig(TransformerConfig):
    """Hyperparameters of the encoder."""

    kind: Literal["sentences"] = "sentences"
    """Kind of encoder."""
    max_length: int = 256
    """Number of sentence positions, counted from the end; earlier sentences share the last one."""
    num_rounds: Positive = 1
    """Number of times all blocks are applied, with the same weights."""
    max_words: Positive = 32
    """Number of word positions with a separate mask; later words share the last one."""
    has_question: bool = False
    """Whether the last sentence is a question: it is then the summary, and the decoder attends to
    the other sentences."""
    separator: NonNegative = 3
    """Id of the token that ends a sentence."""


class SentencesEncoder(PositionedStack, TokenEncoder):
    """Encoder of several sentences as a sequence of sentence vectors.

    A sentence vector is the sum of its word embeddings, each multiplied by a mask of its position
    (Henaff et al. 2017, eq. 1), plus an embedding of the sentence's age (Sukhbaatar et al. 2015,
    section 4.1). Transformer blocks over the sentences may share weights (Dehghani et al. 2019).
    """

    def __init__(self, config: SentencesEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.separator = config.separator
        self.has_question = config.has_question
        self.embedding = Embedding(spec.vocab_size, config.dim)
        # Added to one, so a sentence vector is initially close to the sum of its words.
        self.word_masks = nn.Parameter(
            nn.init.normal_(torch.empty(config.max_words, config.dim), std=0.1)
        )
        self.build_layers(config, build_positions(config, is_causal=False))
        self.blocks.num_rounds = config.num_rounds
        self.scale = config.dim**0.5

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode token ids (B, S) into a `Memory` with one position per sentence.

        The summary is the state of the last sentence, or its input vector if it is a question.
        """
        mask = mask.to(values.device, non_blocking=True)
        indices = self.memory_positions(values, mask)
        counts = indices.masked_fill(~mask, 0).amax(1, keepdim=True) + 1  # (B, 1)
        sentences = torch.arange(int(counts.max()), device=values.device)
        belongs = (indices[:, None] == sentences[:, None]) & mask[:, None]  # (B, L, S)
        words = self._sum_words(values, indices, belongs)
        states = self.dropout(self._add_ages(words, ages=counts - 1 - sentences))
        is_real = sentences < counts  # (B, L)
        states = self.norm(self.blocks(states, mask=is_real[:, None]))
        is_last = sentences == counts - 1
        if self.has_question:
            # The question is masked, unless it is the only sentence.
            return Memory(states, is_real & (~is_last | (counts == 1)), words[is_last])
        return Memory(states, is_real, states[is_last])

    def memory_positions(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return the sentence index of each token (B, S). A separator belongs to its sentence."""
        return segment(values, self.separator)

    def _sum_words(self, values: Tensor, indices: Tensor, belongs: Tensor) -> Tensor:
        """Sum the masked word embeddings of each sentence, (B, L, D).

        Args:
            values: (B, S) token ids.
            indices: (B, S), sentence index of each token.
            belongs: (B, L, S), whether a token belongs to a sentence.
        """
        tokens = torch.arange(values.shape[1], device=values.device)
        is_first = torch.cat([indices[:, :1] == 0, indices[:, 1:] != indices[:, :-1]], dim=1)
        positions = tokens - (tokens * is_first).cummax(1).values  # (B, S)
        masks = 1 + self.word_masks[positions.clamp(max=len(self.word_masks) - 1)]  # (B, S, D)
        words = self.embedding(values) * masks * self.scale
        kept = belongs & (values != self.separator)[:, None]
        summed: Tensor = kept.to(words.dtype) @ words  # (B, L, D)
        return summed

    def _add_ages(self, states: Tensor, ages: Tensor) -> Tensor:
        """Add embeddings of the ages (B, L) to sentences (B, L, D); the last sentence has age 0."""
        ages = ages.clamp(min=0, max=self.positions.max_length - 1)
        embeddings = self.positions.embed(torch.arange(int(ages.max()) + 1, device=ages.device))
        return states if embeddings is None else states + embeddings.to(states.dtype)[ages]
