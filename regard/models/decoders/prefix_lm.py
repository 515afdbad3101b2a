"""Decoder-only model: source and target are one sequence of a causal language model."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.attention.beam_cache import BeamCache
from regard.attention.cache import KeyValueCache
from regard.attention.multihead import SelfAttention
from regard.core.config import NonNegativeFloat
from regard.core.module import Embedding, Linear
from regard.models.interfaces import Decoder, Memory, Output, State
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
            mask: (B, Q, K) or broadcastable, True = may attend; it is given for targets only.
            is_causal: Whether a position attends to itself and earlier positions only.
            cache: Key-value cache, which begins with the source.

        Returns:
            The output (B, Q, D), and the weights on the source (B, H, Q, S) or None.
        """
        output, weights = super().forward(states, mask=mask, is_causal=is_causal, cache=cache)
        if weights is None or cache is None or not cache.num_prefix:
            return output, None
        return output, weights[..., : cache.num_prefix]


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
        _, cache = self._encode_source(memory, beams=beams, max_length=max_length)
        return State({}, cache)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        first = state.per_hypothesis.length
        cache = state.per_hypothesis.fork(tokens.shape[1], tokens.device)
        embedded = self.embedding(tokens) * self.scale
        states = cache.by_sentence(self._embed_segment(embedded, segment=1, first=first))
        states = self.blocks(states, mask=cache.mask, caches=cache.caches)
        return self.output(self.norm(states)).view(*tokens.shape, -1), State({}, cache)

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Process full targets, token ids (B, T) from the start token on, in parallel."""
        states, cache = self._encode_source(memory)
        logits, _ = self.step(targets, State({}, cache))
        if not self.source_weight:
            return Output(logits)
        return Output(logits, {"source": self.source_weight * self._source_loss(states, memory)})

    def _encode_source(
        self, memory: Memory, *, beams: int = 1, max_length: int | None = None
    ) -> tuple[Tensor, BeamCache]:
        """Return the last states of the source (B, S, D), and caches with the source as a prefix.

        Padding is at the end, so with the causal mask no real position attends to it.
        """
        num_source = memory.states.shape[1]
        capacity = None if max_length is None else num_source + beams * max_length
        cache = self.blocks.new_cache(max_length=capacity).fork(num_source, memory.states.device)
        embedded = self._embed_segment(self.source_map(memory.states), segment=0)
        states = self.blocks(embedded, is_causal=True, caches=cache.caches)
        return states, cache.with_prefix(memory.mask, beams=beams)

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
