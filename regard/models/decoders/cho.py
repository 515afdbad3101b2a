"""Decoder of Cho et al. 2014: a fixed context as input of every step."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.models.decoders.recurrent import ContextInputConfig, RecurrentDecoder
from regard.models.interfaces import Memory, State, repeat_rows


@dataclass(frozen=True, kw_only=True)
class ChoDecoderConfig(ContextInputConfig):
    """Hyperparameters of the decoder; the paper uses s_0 = tanh(W c) and maxout."""

    kind: Literal["cho"] = "cho"
    """Kind of decoder."""


class ChoDecoder(RecurrentDecoder):
    """Recurrent decoder with the context c as input of every step: s_t = f(y_{t-1}, s_{t-1}, c)."""

    def __init__(self, config: ChoDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(config, vocab_size, context_dim=memory_dim, readout_dim=config.readout_dim)
        self.bridge = config.build_bridge(memory_dim)
        self.readout = config.build_readout(memory_dim)

    def prepare(self, memory: Memory) -> dict[str, Tensor]:
        """Return the fixed context."""
        return {"context": memory.summary}

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        summary: Tensor = state.per_source["context"]
        beams = tokens.shape[0] // summary.shape[0]
        context = repeat_rows(summary, beams)[:, None].expand(-1, tokens.shape[1], -1)
        inputs = torch.cat([embedded, context.to(embedded.dtype)], dim=-1)
        states, layers = self.recurrence(inputs, state.per_hypothesis["layers"])
        readout = self.readout(states, embedded, context)
        return self.output(self.dropout(readout)), State(state.per_source, {"layers": layers})
