"""Transformer decoder: causal self-attention and cross-attention to the source."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from regard.attention.cache import KeyValueCache
from regard.attention.multihead import KeyValue
from regard.core.module import Embedding, Linear
from regard.models.interfaces import Decoder, Memory, Output, State
from regard.models.transformer import PositionedStack, TransformerConfig, build_positions


@dataclass(frozen=True, kw_only=True)
class TransformerDecoderConfig(TransformerConfig):
    """Hyperparameters of the decoder."""

    kind: Literal["transformer"] = "transformer"
    """Kind of decoder."""


class TransformerDecoder(PositionedStack, Decoder):
    """Transformer decoder (Vaswani et al. 2017)."""

    def __init__(
        self, config: TransformerDecoderConfig, vocab_size: int, *, memory_dim: int
    ) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, config.dim)
        positions = build_positions(config, is_causal=True)
        self.build_layers(config, positions, memory_dim=memory_dim)
        self.output = Linear(config.dim, vocab_size)
        self.scale = config.dim**0.5

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        per_source = {"memory": self.blocks.project_memory(memory.states), "mask": memory.mask}
        return State(per_source, per_hypothesis=self.blocks.new_caches(max_length))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        caches = [cache.fork() for cache in state.per_hypothesis]
        source = state.per_source
        logits = self._run(tokens, source["memory"], mask=source["mask"], caches=caches)
        return logits, State(source, caches)

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Process full targets, token ids (B, T) from the start token on, in parallel."""
        return Output(self._run(targets, memory.states, mask=memory.mask))

    def _run(
        self,
        tokens: Tensor,
        memory: Tensor | list[KeyValue],
        *,
        mask: Tensor,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        first = caches[0].position if caches else 0
        states = self.embed(self.embedding(tokens) * self.scale, first=first)  # (B·W, T, D)
        states = self.blocks(states, is_causal=True, caches=caches, memory=memory, memory_mask=mask)
        return self.output(self.norm(states))
