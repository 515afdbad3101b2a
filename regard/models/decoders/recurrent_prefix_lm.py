"""Recurrent language model of source and target as one sequence."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.core.module import Linear
from regard.models.decoders.recurrent import RecurrentDecoder
from regard.models.interfaces import LayerStates, Memory, State, repeat_rows
from regard.models.recurrent import RecurrentConfig, run_padded


@dataclass(frozen=True, kw_only=True)
class RecurrentPrefixDecoderConfig(RecurrentConfig):
    """Hyperparameters of the decoder."""

    kind: Literal["recurrent_prefix"] = "recurrent_prefix"
    """Kind of decoder."""


class RecurrentPrefixDecoder(RecurrentDecoder):
    """One recurrence over source, start token and target; the start token separates them.

    The target starts from the last hidden state of the source, which the same weights compute. With
    the encoder 'embedding', a joint vocabulary and `ties` 'all', there is a single network.
    """

    def __init__(
        self, config: RecurrentPrefixDecoderConfig, vocab_size: int, *, memory_dim: int
    ) -> None:
        super().__init__(config, vocab_size, readout_dim=config.dim)
        has_equal_width = memory_dim == config.embedding_dim
        self.source_map = (
            nn.Identity() if has_equal_width else Linear(memory_dim, config.embedding_dim)
        )
        # The encoder 'embedding' scales its embeddings by this factor, too.
        self.scale = config.embedding_dim**0.5

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Process the source and return the state before the first token of the target."""
        return State({}, {"layers": repeat_rows(self.encode_source(memory), beams)})

    def encode_source(self, memory: Memory) -> LayerStates:
        """Return the states of all layers after the last real position of the source."""
        embedded = self.dropout(self.source_map(memory.states))  # (B, S, D)
        _, parts = run_padded(self.recurrence.sequence, embedded, memory.mask)
        return tuple(zip(*parts, strict=True))

    def embed(self, tokens: Tensor) -> Tensor:
        """Embed tokens (B·W, T) on the scale of the source, (B·W, T, D)."""
        embedded: Tensor = self.embedding(tokens) * self.scale
        return embedded
