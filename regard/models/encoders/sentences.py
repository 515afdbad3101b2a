"""The encoder of stories: each sentence becomes one vector, and the vectors look at each other."""

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
    """A vector for each of several texts, and blocks over these vectors."""

    kind: Literal["sentences"] = "sentences"
    """What kind of encoder this is."""
    max_length: int = 256
    """Ages that are told apart where positions are added; older ones share the last."""
    num_rounds: Positive = 1
    """How often all blocks are run, with the same weights."""
    max_words: Positive = 32
    """Places in a sentence that have a mask of their own; words beyond share the last."""
    has_question: bool = False
    """Whether the last text asks about the others: a decoder then starts from its words alone, and
    has to look for the answer in the others."""
    separator: NonNegative = 3
    """Id of the token that ends a sentence."""


class SentencesEncoder(PositionedStack, TokenEncoder):
    """Reads several texts as a short sequence of vectors.

    A sentence is the sum of its words, each under a mask for its place in it (Henaff et al. 2017,
    eq. 1), and how old it is (Sukhbaatar et al. 2015, section 4.1). Blocks of self-attention over
    the sentences may share their weights (Dehghani et al. 2019).
    """

    def __init__(self, config: SentencesEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.memory_dim = config.dim
        self.separator = config.separator
        self.has_question = config.has_question
        self.embedding = Embedding(spec.vocab_size, config.dim)
        # As what is added to one: so a sentence begins close to the plain sum of its words.
        self.word_masks = nn.Parameter(0.1 * torch.randn(config.max_words, config.dim))
        self.build_layers(config, build_positions(config, is_causal=False))
        self.blocks.num_rounds = config.num_rounds
        self.scale = config.dim**0.5

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read all sentences, token ids (B, S), and return their `Memory`, a position for each.

        The summary is the last of them, which has seen all others; as a question, it has not.
        """
        mask = mask.to(values.device, non_blocking=True)
        groups = self.groups(values, mask)
        nums = groups.masked_fill(~mask, 0).amax(1, keepdim=True) + 1  # (B, 1)
        sentences = torch.arange(int(nums.max()), device=values.device)
        belongs = (groups[:, None] == sentences[:, None]) & mask[:, None]  # (B, L, S)
        words = self._sum_words(values, groups, belongs)
        states = self.dropout(self._place(words, ages=nums - 1 - sentences))
        is_real = sentences < nums  # (B, L)
        states = self.norm(self.blocks(states, mask=is_real[:, None]))
        is_last = sentences == nums - 1
        if self.has_question:
            # A question without a story is all there is to look at.
            return Memory(states, is_real & (~is_last | (nums == 1)), words[is_last])
        return Memory(states, is_real, states[is_last])

    def groups(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return the sentence of each token (B, S), counted from 0; a separator ends its own."""
        return segment(values, self.separator)

    def _sum_words(self, values: Tensor, groups: Tensor, belongs: Tensor) -> Tensor:
        """Sum the masked words of each sentence, (B, L, D).

        Args:
            values: (B, S) token ids.
            groups: (B, S), the sentence of each.
            belongs: (B, L, S), whether a sentence has a token.
        """
        length = torch.arange(values.shape[1], device=values.device)
        is_first = torch.cat([groups[:, :1] == 0, groups[:, 1:] != groups[:, :-1]], dim=1)
        places = length - (length * is_first).cummax(1).values  # (B, S)
        masks = 1 + self.word_masks[places.clamp(max=len(self.word_masks) - 1)]  # (B, S, D)
        words = self.embedding(values) * masks * self.scale
        kept = belongs & (values != self.separator)[:, None]
        summed: Tensor = kept.to(words.dtype) @ words  # (B, L, D)
        return summed

    def _place(self, states: Tensor, ages: Tensor) -> Tensor:
        """Add to sentences (B, L, D) how old they are, `ages` (B, L); the last is of age 0."""
        ages = ages.clamp(min=0, max=self.positions.max_length - 1)
        added = self.positions.embed(torch.arange(int(ages.max()) + 1, device=ages.device))
        return states if added is None else states + added.to(states.dtype)[ages]
