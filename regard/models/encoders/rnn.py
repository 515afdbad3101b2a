"""The recurrent encoder: vanilla, GRU or LSTM cells, in one direction or both."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.attention.pooling import max_pool
from regard.core.module import Dropout, Embedding
from regard.core.specs import TextSpec
from regard.models.interfaces import LayerStates, Memory, TokenEncoder, masked_mean
from regard.models.recurrent import SEQUENCES, RecurrentConfig, num_tensors, run_packed


@dataclass(frozen=True, kw_only=True)
class RnnEncoderConfig(RecurrentConfig):
    """A recurrent encoder."""

    kind: Literal["rnn"] = "rnn"
    """What kind of encoder this is."""
    is_bidirectional: bool = False
    """Read the source in both directions; states are then twice as wide."""
    is_reversed: bool = False
    """Feed the source words last to first, as Sutskever et al. 2014 do."""
    context: Literal["last", "mean", "max"] = "last"
    """The fixed context c = q(h_1 … h_S): the last state, or the mean or maximum of all."""


class RnnEncoder(TokenEncoder):
    """Reads the source with a recurrent network (Cho et al. 2014; Sutskever et al. 2014).

    In both directions the annotations are [h→; h←] as in Bahdanau et al. 2015, eq. 7.
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
        """Read the whole source, token ids (B, S), and return its `Memory`."""
        lengths = mask.sum(1).cpu()
        order, read = None, values
        if self.config.is_reversed:
            order = reading_order(lengths, values.shape[1]).to(values.device, non_blocking=True)
            read = values.gather(1, order)  # (B, S)
        embedded = self.dropout(self.embedding(read))
        states, parts = run_packed(self.recurrence, embedded, lengths)
        final = self._layers(parts)
        if order is not None:
            states = states.gather(1, order[..., None].expand_as(states))
        mask = mask.to(values.device, non_blocking=True)
        summary = self._summarise(states, mask, final)
        return Memory(self.dropout(states), mask, summary, final=final, tokens=values)

    def _layers(self, parts: tuple[Tensor, ...]) -> LayerStates:
        assert len(parts) == num_tensors(self.config.cell)
        joined = [
            part.view(self.config.num_layers, -1, *part.shape[1:]).transpose(1, 2).flatten(2)
            for part in parts
        ]  # (N, B, D) each, both directions side by side
        return tuple(zip(*joined, strict=True))

    def _summarise(self, states: Tensor, mask: Tensor, final: LayerStates) -> Tensor:
        if self.config.context == "mean":
            return masked_mean(states, mask)
        if self.config.context == "max":
            return max_pool(states, mask)
        return final[-1][0]


def reading_order(lengths: Tensor, length: int) -> Tensor:
    """Return the positions of each sentence last to first, (B, S); its end token stays last.

    The order is its own inverse, so that gathering twice restores the sentence.
    """
    places = torch.arange(length, device=lengths.device)
    last_word = lengths[:, None] - 2
    return torch.where(places <= last_word, last_word - places, places)  # (B, S)
