"""Plain PyTorch decoders of recurrent models, step by step as in textbooks."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.errors import RegardError
from regard.models.build import ModelConfig
from regard.models.decoders.bahdanau import BahdanauDecoder, BahdanauDecoderConfig
from regard.models.decoders.luong import LuongDecoder, LuongDecoderConfig
from regard.models.encoders.rnn import RnnEncoder
from regard.models.interfaces import Memory
from regard.models.recurrent import WEIGHTS, Recurrence
from regard.models.seq2seq import EncoderDecoder

CELLS: dict[str, type[nn.GRUCell] | type[nn.LSTMCell]] = {"gru": nn.GRUCell, "lstm": nn.LSTMCell}
"""Cells of torch by name."""

PlainState = dict[str, Any]
"""`layers`: h, or (h, c), (B·W, D) of each layer; for input feeding, `fed`: (B·W, D)."""


class PlainDecoder(nn.Module, ABC):
    """Decoder with the weights of a run, `nn.GRUCell` or `nn.LSTMCell`, and attention.

    As in textbook code, the memory is repeated for every beam, and its projection for the attention
    is computed in every step.

    Args:
        model: The encoder–decoder of the run.
    """

    decoder: Any
    """The decoder of the run."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        decoder: Any = model.decoder
        recurrence: Recurrence = decoder.recurrence
        self.decoder = decoder
        cells = [_build_cell(recurrence, layer) for layer in range(recurrence.num_layers)]
        self.cells = nn.ModuleList(cells)

    def start(self, memory: Memory, beams: int) -> PlainState:
        """Return the state before the first token."""
        layers = [
            tuple(part.repeat_interleave(beams, dim=0) for part in parts)
            for parts in self.decoder.bridge(memory)
        ]
        return {
            "layers": [parts if len(parts) == 2 else parts[0] for parts in layers],
            "memory": memory.states.repeat_interleave(beams, dim=0),  # (B·W, S, D)
            "mask": memory.mask.repeat_interleave(beams, dim=0),  # (B·W, S)
        }

    @abstractmethod
    def step(self, tokens: Tensor, state: PlainState) -> tuple[Tensor, PlainState]:
        """Process tokens (B·W,); return logits (B·W, V) and the next state."""

    def run_cells(self, inputs: Tensor, layers: list[Any]) -> tuple[Tensor, list[Any]]:
        """Return the new state of the top layer (B·W, D), and those of all layers."""
        states = []
        for cell, layer in zip(self.cells, layers, strict=True):
            states.append(cell(inputs, layer))
            inputs = _hidden(states[-1])
        return inputs, states


class PlainBahdanau(PlainDecoder):
    """Additive attention with the last state, a recurrent step, and maxout."""

    def step(self, tokens: Tensor, state: PlainState) -> tuple[Tensor, PlainState]:
        """Process tokens (B·W,); return logits (B·W, V) and the next state."""
        score, word = self.decoder.attention.score, self.decoder.embedding(tokens)
        keys = score.key_map(state["memory"])  # (B·W, S, D)
        query = score.query_map(_hidden(state["layers"][-1]))  # (B·W, D)
        scores = score.weight(torch.tanh(query[:, None] + keys)).squeeze(-1)  # (B·W, S)
        context = _attend(scores, state)
        output, layers = self.run_cells(torch.cat([word, context], dim=-1), state["layers"])
        joined = self.decoder.readout.joint_map(torch.cat([output, word, context], dim=-1))
        maxout = joined.unflatten(-1, (-1, 2)).amax(-1)  # (B·W, D)
        return self.decoder.output(maxout), {**state, "layers": layers}


class PlainLuong(PlainDecoder):
    """Input feeding, a recurrent step, and bilinear attention with the new state."""

    def start(self, memory: Memory, beams: int) -> PlainState:
        """Return the state before the first token."""
        state = super().start(memory, beams)
        return {**state, "fed": torch.zeros_like(_hidden(state["layers"][-1]))}

    def step(self, tokens: Tensor, state: PlainState) -> tuple[Tensor, PlainState]:
        """Process tokens (B·W,); return logits (B·W, V) and the next state."""
        inputs = self.decoder.embedding(tokens)
        if self.decoder.is_input_fed:
            inputs = torch.cat([inputs, state["fed"]], dim=-1)
        output, layers = self.run_cells(inputs, state["layers"])
        keys = self.decoder.attention.score.key_map(state["memory"])  # (B·W, S, D)
        scores = torch.bmm(keys, output[..., None]).squeeze(-1)  # (B·W, S)
        context = _attend(scores, state)
        vector = torch.tanh(self.decoder.attentional_map(torch.cat([context, output], dim=-1)))
        return self.decoder.output(vector), {**state, "layers": layers, "fed": vector}


def build_plain(model: EncoderDecoder, config: ModelConfig) -> PlainDecoder:
    """Return the plain decoder of a model; raise `RegardError` if there is none."""
    encoder, decoder = model.encoder, model.decoder
    settings = config.decoder
    if isinstance(encoder, RnnEncoder) and config.copying.kind == "none":
        if isinstance(settings, BahdanauDecoderConfig) and isinstance(decoder, BahdanauDecoder):
            wanted = ("additive", "maxout", True)
            if (settings.score, settings.readout, settings.is_recurrent) == wanted:
                return PlainBahdanau(model)
        if isinstance(settings, LuongDecoderConfig) and isinstance(decoder, LuongDecoder):
            if (settings.score, settings.span) == ("general", "global"):
                return PlainLuong(model)
    raise RegardError(
        "The plain loop has recurrent models with the settings of `bahdanau2015` and `luong2015`, "
        f"but not an encoder '{config.encoder.kind}' with this decoder '{settings.kind}'."
    )


def _build_cell(recurrence: Recurrence, layer: int) -> nn.Module:
    if recurrence.cell not in CELLS:
        raise RegardError(f"The plain loop has no cell '{recurrence.cell}'.")
    weights = [getattr(recurrence.sequence, f"{name}_l{layer}") for name in WEIGHTS]
    cell = CELLS[recurrence.cell](weights[0].shape[1], recurrence.dim)
    for name, weight in zip(WEIGHTS, weights, strict=True):
        setattr(cell, name, weight)
    return cell


def _hidden(state: Any) -> Tensor:
    """Return h of a layer, whose state is h, or (h, c)."""
    hidden: Tensor = state[0] if isinstance(state, tuple) else state
    return hidden


def _attend(scores: Tensor, state: PlainState) -> Tensor:
    """Return the contexts (B·W, D) of scores (B·W, S)."""
    weights = scores.masked_fill(~state["mask"], float("-inf")).softmax(-1)
    return torch.bmm(weights[:, None], state["memory"])[:, 0]
