"""The decoder of Cho et al. 2014: one fixed context, shown again at every step."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.models.decoders.recurrent import MaxoutReadout, RecurrentDecoder, SummaryBridge
from regard.models.interfaces import Memory, State, repeat_rows
from regard.models.recurrent import RecurrentConfig


@dataclass(frozen=True, kw_only=True)
class ChoDecoderConfig(RecurrentConfig):
    """Sees the same fixed context at every step."""

    kind: Literal["cho"] = "cho"
    """What kind of decoder this is."""


class ChoDecoder(RecurrentDecoder):
    """s_0 = tanh(W c), and the context c joins the input at every step."""

    def __init__(self, config: ChoDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        readout_dim = config.embedding_dim
        super().__init__(config, vocab_size, context_dim=memory_dim, readout_dim=readout_dim)
        self.bridge = SummaryBridge(config, memory_dim)
        self.readout = MaxoutReadout(config, memory_dim)

    def prepare(self, memory: Memory) -> dict[str, Tensor]:
        """Keep the fixed context."""
        return {"context": memory.summary}

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and the next state."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        summary: Tensor = state.per_source["context"]
        beams = tokens.shape[0] // summary.shape[0]
        context = repeat_rows(summary, beams)[:, None].expand(-1, tokens.shape[1], -1)
        inputs = torch.cat([embedded, context.to(embedded.dtype)], dim=-1)
        states, layers = self.recurrence(inputs, state.per_hypothesis["layers"])
        readout = self.readout(states, embedded, context)
        return self.output(self.dropout(readout)), State(state.per_source, {"layers": layers})
