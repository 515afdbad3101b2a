"""The transformer decoder: it looks back at itself and across at the source."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.models.interfaces import Decoder, Memory, State
from regard.models.transformer import (
    TransformerBlock,
    TransformerBlocks,
    TransformerConfig,
    build_final_norm,
    build_positions,
    place,
)


@dataclass(frozen=True, kw_only=True)
class TransformerDecoderConfig(TransformerConfig):
    """A stack of blocks that look back, and at the source."""

    kind: Literal["transformer"] = "transformer"
    """What kind of decoder this is."""


class TransformerDecoder(Decoder):
    """Writes the target with masked self-attention and cross-attention (Vaswani et al. 2017)."""

    def __init__(
        self, config: TransformerDecoderConfig, vocab_size: int, *, memory_dim: int
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, config.dim)
        self.positions = build_positions(config, is_causal=True)
        self.blocks = TransformerBlocks(
            TransformerBlock(config, self.positions, memory_dim=memory_dim)
            for _ in range(config.num_layers)
        )
        self.norm = build_final_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(config.dim, vocab_size)
        self.scale = config.dim**0.5

    def start(self, memory: Memory, *, beams: int = 1) -> State:
        """Stand before the first token, with `beams` hypotheses a sentence."""
        source = [block.cross_attention.prepare(memory.states) for block in self.blocks]
        # Nothing has been written: no keys, but their shape says how many rows there are.
        nothing = [
            tuple(heads[:, :, :0].repeat_interleave(beams, dim=0) for heads in pair)
            for pair in source
        ]
        return State(per_source={"source": source, "mask": memory.mask}, per_hypothesis=nothing)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and where the decoder stands now."""
        first = state.per_hypothesis[0][0].shape[2]
        embedded = self.embedding(tokens) * self.scale  # (B·W, T, D)
        states = self.dropout(place(embedded, self.positions, first=first))
        per_hypothesis = []
        for block, past, source in zip(
            self.blocks, state.per_hypothesis, state.per_source["source"], strict=True
        ):
            states, heads = block.decode(states, past, source, mask=state.per_source["mask"])
            per_hypothesis.append(heads)
        return self.output(self.norm(states)), State(state.per_source, per_hypothesis)
