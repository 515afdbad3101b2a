"""Decoder-only model: source and target are one sequence of a causal language model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.attention.cache import KeyValueCache
from regard.attention.masks import causal_mask
from regard.attention.multihead import KeyValue, SelfAttention
from regard.core.config import NonNegativeFloat
from regard.core.module import Embedding, Linear
from regard.models.interfaces import Decoder, Memory, Output, State, repeat_rows
from regard.models.transformer import PositionedStack, TransformerConfig, build_positions


@dataclass(frozen=True, kw_only=True)
class PrefixDecoderConfig(TransformerConfig):
    """Hyperparameters of the decoder."""

    kind: Literal["prefix"] = "prefix"
    """Kind of decoder."""
    source_weight: NonNegativeFloat = 0.0
    """Weight of the language-model loss on the source; above 0 it needs the encoder 'embedding' and
    a joint vocabulary."""


class PrefixAttention(SelfAttention):
    """Self-attention of the target, with the source as a prefix in the same softmax.

    Only the weights on the source are returned, so rows sum to less than one. No weights are
    returned while the source is encoded.
    """

    is_self = False

    def forward(
        self,
        states: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from states (B, Q, D) to the cached positions and to themselves.

        Args:
            states: (B, Q, D).
            mask: (B, Q, K) or broadcastable, True = may attend.
            is_causal: Whether a position attends to itself and earlier positions only.
            cache: Key-value cache; its prefix holds the keys and values of the source.

        Returns:
            The output (B, Q, D), and the weights on the source (B, H, Q, S) or None.
        """
        output, weights = super().forward(states, mask=mask, is_causal=is_causal, cache=cache)
        if weights is None or cache is None or cache.prefix is None:
            return output, None
        return output, weights[..., : cache.prefix[0].shape[2]]


class PrefixDecoder(PositionedStack, Decoder):
    """One transformer stack over source, start token and target (Liu et al. 2018).

    Positions of the target start at 0 again, and segment embeddings distinguish source and target,
    so results do not depend on padding, and a word and its translation have similar positions.
    """

    def __init__(self, config: PrefixDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, config.dim)
        self.segment_embedding = Embedding(2, config.dim)
        self.source_map = (
            nn.Identity() if memory_dim == config.dim else Linear(memory_dim, config.dim)
        )
        # Relative to a target position, source positions lie on both sides.
        positions = build_positions(config, is_causal=False)
        self.build_layers(config, positions, attention_type=PrefixAttention)
        self.output = Linear(config.dim, vocab_size)
        self.scale = config.dim**0.5
        self.source_weight = config.source_weight

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Encode the source and return the state before the first token of the target."""
        _, source = self._encode_source(memory)
        per_source = {"source": source, "mask": memory.mask}
        return State(per_source, per_hypothesis=self.blocks.new_caches(max_length))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        caches = [cache.fork() for cache in state.per_hypothesis]
        source, mask = state.per_source["source"], state.per_source["mask"]
        logits = self._run(tokens, source, mask=mask, caches=caches)
        return logits, State(state.per_source, [cache.fork() for cache in caches])

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Process full targets, token ids (B, T) from the start token on, in parallel."""
        states, source = self._encode_source(memory)
        logits = self._run(targets, source, mask=memory.mask, caches=self.blocks.new_caches())
        if not self.source_weight:
            return Output(logits)
        return Output(logits, {"source": self.source_weight * self._source_loss(states, memory)})

    def _encode_source(self, memory: Memory) -> tuple[Tensor, list[KeyValue]]:
        """Return the last states of the source (B, S, D), and its keys and values per block.

        Padding is at the end, so with the causal mask no real position attends to it.
        """
        caches = self.blocks.new_caches()
        embedded = self._embed_segment(self.source_map(memory.states), segment=0)
        states = self.blocks(embedded, is_causal=True, caches=caches)
        return states, [cache.visible for cache in caches]

    def _run(
        self,
        tokens: Tensor,
        source: list[KeyValue],
        *,
        mask: Tensor,
        caches: Sequence[KeyValueCache],
    ) -> Tensor:
        beams, num_tokens = len(tokens) // len(mask), tokens.shape[1]
        for cache, key_value in zip(caches, source, strict=True):
            cache.prefix = repeat_rows(key_value, beams)
        first = caches[0].position
        causal = causal_mask(num_tokens, first + num_tokens, tokens.device).expand(
            len(tokens), -1, -1
        )
        source_mask = repeat_rows(mask, beams)[:, None].expand(-1, num_tokens, -1)  # (B·W, T, S)
        embedded = self.embedding(tokens) * self.scale
        states = self._embed_segment(embedded, segment=1, first=first)
        states = self.blocks(states, mask=torch.cat([source_mask, causal], dim=2), caches=caches)
        return self.output(self.norm(states))

    def _embed_segment(self, embedded: Tensor, *, segment: int, first: int = 0) -> Tensor:
        """Add segment and position embeddings to (B, L, D); the first position is `first`."""
        return self.embed(embedded + self.segment_embedding.weight[segment], first=first)

    def _source_loss(self, states: Tensor, memory: Memory) -> Tensor:
        """Return the mean cross-entropy of the source tokens after the first."""
        assert memory.tokens is not None
        is_real = memory.mask[:, 1:]
        logits = self.output(self.norm(states[:, :-1])).float()
        labels = memory.tokens[:, 1:].masked_fill(~is_real, -100)
        total = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        return total / is_real.sum().clamp(min=1)
