"""Transformer decoder: causal self-attention and cross-attention to the source."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

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
        return State(per_source, self.blocks.new_cache(beams=beams, max_length=max_length))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        cache = state.per_hypothesis.fork(tokens.shape[1], tokens.device)
        states = self._embed(tokens, first=state.per_hypothesis.length)
        states = self.blocks(
            cache.by_sentence(states),
            mask=cache.mask,
            is_causal=cache.mask is None,
            caches=cache.caches,
            memory=state.per_source["memory"],
            memory_mask=state.per_source["mask"],
        )
        logits = self.output(self.norm(states))
        return logits.view(*tokens.shape, -1), State(state.per_source, cache)

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Process full targets, token ids (B, T) from the start token on, in parallel."""
        states = self.blocks(
            self._embed(targets), is_causal=True, memory=memory.states, memory_mask=memory.mask
        )
        return Output(self.output(self.norm(states)))

    def _embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """Embed tokens (B·W, T) at positions from `first` on, (B·W, T, D)."""
        return self.embed(self.embedding(tokens) * self.scale, first=first)
