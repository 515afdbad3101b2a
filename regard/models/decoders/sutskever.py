"""Decoder of Sutskever et al. 2014: the source is encoded in the initial state only."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from regard.models.decoders.recurrent import FinalStateBridge, RecurrentDecoder
from regard.models.interfaces import State
from regard.models.recurrent import RecurrentConfig


@dataclass(frozen=True, kw_only=True)
class SutskeverDecoderConfig(RecurrentConfig):
    """Hyperparameters of the decoder."""

    kind: Literal["sutskever"] = "sutskever"
    """Kind of decoder."""


class SutskeverDecoder(RecurrentDecoder):
    """Recurrent language model whose initial state is the final state of the encoder."""

    def __init__(self, config: SutskeverDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(config, vocab_size, readout_dim=config.dim)
        self.bridge = FinalStateBridge(config, memory_dim)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        states, layers = self.recurrence(embedded, state.per_hypothesis["layers"])
        return self.output(self.dropout(states)), State(state.per_source, {"layers": layers})
