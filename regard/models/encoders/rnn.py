"""Recurrent encoder: vanilla, GRU or LSTM cells, unidirectional or bidirectional."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from regard.attention.pooling import max_pool
from regard.core.dropout import Dropout
from regard.core.module import Embedding
from regard.core.specs import TextSpec
from regard.models.interfaces import LayerStates, Memory, TokenEncoder, masked_mean
from regard.models.recurrent import (
    SEQUENCES,
    RecurrentConfig,
    num_tensors,
    reversed_positions,
    run_padded,
    take_positions,
)


@dataclass(frozen=True, kw_only=True)
class RnnEncoderConfig(RecurrentConfig):
    """Hyperparameters of the encoder."""

    kind: Literal["rnn"] = "rnn"
    """Kind of encoder."""
    is_bidirectional: bool = False
    """Whether the encoder is bidirectional; the states are then twice as wide."""
    is_reversed: bool = False
    """Whether the source is reversed, as in Sutskever et al. 2014."""
    context: Literal["last", "mean", "max"] = "last"
    """Fixed context c = q(h_1 … h_S): the last state, the mean or the maximum."""


class RnnEncoder(TokenEncoder):
    """Recurrent encoder (Cho et al. 2014; Sutskever et al. 2014).

    If bidirectional, the annotations are [h→; h←] as in Bahdanau et al. 2015, eq. 7.
    """

    def __init__(self, config: RnnEncoderConfig, spec: TextSpec) -> None:
        super().__init__()
        self.config = config
        self.memory_dim = config.dim * (2 if config.is_bidirectional else 1)
        self.embedding = Embedding(spec.vocab_size, config.embedding_dim)
        self.recurrence = SEQUENCES[config.cell](
            config.embedding_dim,
            config.dim,
            config.num_layers,
            batch_first=True,
            bidirectional=config.is_bidirectional,
            dropout=config.dropout if config.num_layers > 1 else 0.0,
        )
        self.dropout = Dropout(config.dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode token ids (B, S) into a `Memory`."""
        mask = mask.to(values.device, non_blocking=True)
        order, inputs = None, values
        if self.config.is_reversed:
            order = reversed_order(mask)
            inputs = values.gather(1, order)  # (B, S)
        embedded = self.dropout(self.embedding(inputs))
        states, parts = run_padded(self.recurrence, embedded, mask)
        final = self._layers(parts)
        if order is not None:
            states = take_positions(states, order)
        summary = self._summarise(states, mask, final)
        return Memory(self.dropout(states), mask, summary, final=final, tokens=values)

    def _layers(self, parts: tuple[Tensor, ...]) -> LayerStates:
        assert len(parts) == num_tensors(self.config.cell)
        joined = [
            part.view(self.config.num_layers, -1, *part.shape[1:]).transpose(1, 2).flatten(2)
            for part in parts
        ]  # (N, B, D) each, both directions concatenated
        return tuple(zip(*joined, strict=True))

    def _summarise(self, states: Tensor, mask: Tensor, final: LayerStates) -> Tensor:
        if self.config.context == "mean":
            return masked_mean(states, mask)
        if self.config.context == "max":
            return max_pool(states, mask)
        return final[-1][0]


def reversed_order(mask: Tensor) -> Tensor:
    """Return the positions of each sentence in reversed order, (B, S); the end token stays last."""
    return reversed_positions(mask.sum(1) - 1, mask.shape[1])
