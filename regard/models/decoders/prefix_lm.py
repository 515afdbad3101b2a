"""Translation as one language model: source and target are one text, read from left to right."""

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
    """A stack of blocks that read the source, then the target."""

    kind: Literal["prefix"] = "prefix"
    """What kind of decoder this is."""
    source_weight: NonNegativeFloat = 0.0
    """Weight of predicting the source itself; above 0 it needs the encoder 'embedding' and a joint
    vocabulary."""


class PrefixAttention(SelfAttention):
    """Attention within the target and to a source before it, with one softmax over both.

    What is recorded is the share of the source: rows sum to one less what goes to the target. While
    the source itself is read, nothing is recorded.
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
        """Attend from states (B, Q, D) to what the cache holds and to themselves.

        Args:
            states: (B, Q, D).
            mask: (B, Q, K) or broadcastable, True = may attend.
            is_causal: Whether each position sees itself and those before it only.
            cache: Keys and values before; a prefix are those of the source.

        Returns:
            The output (B, Q, D), and the weights on the source (B, H, Q, S) or None.
        """
        output, weights = super().forward(states, mask=mask, is_causal=is_causal, cache=cache)
        if weights is None or cache is None or cache.prefix is None:
            return output, None
        return output, weights[..., : cache.prefix[0].shape[2]]


class PrefixDecoder(PositionedStack, Decoder):
    """One stack reads source and target, the start token between them (Liu et al. 2018).

    The positions of the target begin at 0 again, and a segment embedding tells the two apart: so
    nothing depends on the padding of a batch, and a word and its translation are close.
    """

    def __init__(self, config: PrefixDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, config.dim)
        self.segment_embedding = Embedding(2, config.dim)
        self.source_map = (
            nn.Identity() if memory_dim == config.dim else Linear(memory_dim, config.dim)
        )
        # Seen from the target, the source has positions before and after.
        positions = build_positions(config, is_causal=False)
        self.build_layers(config, positions, attention_type=PrefixAttention)
        self.output = Linear(config.dim, vocab_size)
        self.scale = config.dim**0.5
        self.source_weight = config.source_weight

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Read the source and return the state before the first token of the target."""
        _, source = self._read_source(memory)
        per_source = {"source": source, "mask": memory.mask}
        return State(per_source, per_hypothesis=self.blocks.new_caches(max_length))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and the next state."""
        caches = [cache.fork() for cache in state.per_hypothesis]
        source, mask = state.per_source["source"], state.per_source["mask"]
        logits = self._run(tokens, source, mask=mask, caches=caches)
        return logits, State(state.per_source, [cache.fork() for cache in caches])

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Read a whole target, token ids (B, T) from the start token on: one long step."""
        states, source = self._read_source(memory)
        logits = self._run(targets, source, mask=memory.mask, caches=self.blocks.new_caches())
        if not self.source_weight:
            return Output(logits)
        return Output(logits, {"source": self.source_weight * self._source_loss(states, memory)})

    def _read_source(self, memory: Memory) -> tuple[Tensor, list[KeyValue]]:
        """Return the last states of the source (B, S, D), and its keys and values by block.

        Its padding stands at the end, where no real position sees it.
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
        order = causal_mask(num_tokens, first + num_tokens, tokens.device).expand(
            len(tokens), -1, -1
        )
        seen = repeat_rows(mask, beams)[:, None].expand(-1, num_tokens, -1)  # (B·W, T, S)
        embedded = self.embedding(tokens) * self.scale
        states = self._embed_segment(embedded, segment=1, first=first)
        states = self.blocks(states, mask=torch.cat([seen, order], dim=2), caches=caches)
        return self.output(self.norm(states))

    def _embed_segment(self, embedded: Tensor, *, segment: int, first: int = 0) -> Tensor:
        """Add segment and positions to (B, L, D), the first of which has position `first`."""
        return self.embed(embedded + self.segment_embedding.weight[segment], first=first)

    def _source_loss(self, states: Tensor, memory: Memory) -> Tensor:
        """Return the mean cross entropy of the source's tokens but the first."""
        assert memory.tokens is not None
        is_real = memory.mask[:, 1:]
        logits = self.output(self.norm(states[:, :-1])).float()
        labels = memory.tokens[:, 1:].masked_fill(~is_real, -100)
        total = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        return total / is_real.sum().clamp(min=1)
