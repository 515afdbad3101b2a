"""Stacked recurrent cells, over a whole sequence or one step at a time with the same weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.config import Config, DropoutRate, Positive
from regard.core.module import Dropout, Module
from regard.models.interfaces import LayerStates

Cell = Literal["vanilla", "gru", "lstm"]

SEQUENCES: dict[Cell, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {
    "vanilla": nn.RNN,
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}
STEPS: dict[Cell, Callable[..., Any]] = {
    "vanilla": torch.rnn_tanh_cell,
    "gru": torch.gru_cell,
    "lstm": torch.lstm_cell,
}


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(Config):
    """Settings of every stack of recurrent layers over tokens."""

    cell: Cell = "gru"
    """The recurrent cell."""
    embedding_dim: Positive = 256
    """Width of the embeddings."""
    dim: Positive = 256
    """Width of a layer's states, in each direction where there are two."""
    num_layers: Positive = 1
    """Number of recurrent layers."""
    dropout: DropoutRate = 0.0
    """Dropout on the embeddings, between the layers and on the states or before the output."""


def num_tensors(cell: Cell) -> int:
    """Return how many tensors a layer remembers: h, and for an LSTM also c."""
    return 2 if cell == "lstm" else 1


def run_packed(
    recurrence: nn.RNNBase, inputs: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run torch's recurrent layers over sequences without their padding.

    Packing keeps padding out of both directions, so a sentence's states do not depend on the
    sentences beside it. It wants the lengths in falling order and on the host; sorting there and
    copying without waiting leaves the device undisturbed.

    Args:
        recurrence: The layers, the batch first.
        inputs: (B, S, D).
        lengths: (B,), on the host.

    Returns:
        The states (B, S, D), zeros at padding, and where layers and directions end: h (N, B, D)
        and, of an LSTM, c.
    """
    falling, rows = lengths.sort(descending=True, stable=True)
    back = rows.argsort().to(inputs.device, non_blocking=True)
    rows = rows.to(inputs.device, non_blocking=True)
    packed = pack_padded_sequence(inputs[rows], falling, batch_first=True)
    outputs, last = recurrence(packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
    parts = last if isinstance(last, tuple) else (last,)
    return states[back], tuple(part[:, back] for part in parts)


class BothWays(Module):
    """One LSTM layer that reads forwards and one that reads backwards, side by side.

    Sequences are turned around within their own length instead of packed, so padding still touches
    no state; where lengths differ, a packed layer takes several times as long to learn on a CPU.
    """

    def __init__(self, input_dim: int, dim: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(input_dim, dim, batch_first=True)
        self.backwards = nn.LSTM(input_dim, dim, batch_first=True)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Run over whole sequences.

        Args:
            inputs: (B, S, D).
            mask: (B, S), True = a real position; padding is at the end.

        Returns:
            The states (B, S, D), zeros at padding, and where both directions end, (B, D).
        """
        lengths = mask.sum(1, keepdim=True)
        places = torch.arange(mask.shape[1], device=mask.device)
        # The order is its own inverse: it also puts the states back.
        order = torch.where(mask, lengths - 1 - places, places)[..., None]  # (B, S, 1)
        ahead, _ = self.forwards(inputs)
        turned, _ = self.backwards(inputs.gather(1, order.expand_as(inputs)))
        back = turned.gather(1, order.expand_as(turned))
        states = torch.cat([ahead, back], dim=-1) * mask[..., None]
        at_end = (lengths - 1)[..., None].expand(-1, 1, ahead.shape[-1])
        return states, torch.cat([ahead.gather(1, at_end)[:, 0], back[:, 0]], dim=-1)


class Recurrence(Module):
    """A stack of recurrent layers with two roads to one result.

    Calling it runs torch's own fused kernel over a whole sequence; `step` applies the same
    weights to one position, for decoders whose next input depends on their last output.
    """

    def __init__(self, config: RecurrentConfig, input_dim: int) -> None:
        super().__init__()
        self.cell = config.cell
        self.dim = config.dim
        self.num_layers = config.num_layers
        between = config.dropout if config.num_layers > 1 else 0.0
        self.sequence = SEQUENCES[config.cell](
            input_dim, config.dim, config.num_layers, batch_first=True, dropout=between
        )
        self.dropout = Dropout(between)

    def forward(self, inputs: Tensor, states: LayerStates) -> tuple[Tensor, LayerStates]:
        """Run over a whole sequence.

        Args:
            inputs: (B, T, D).
            states: Where each layer starts.

        Returns:
            The top layer's outputs (B, T, D) and where each layer ends.
        """
        # Mixed precision hands over states of several types; the kernels want one.
        stacked = [
            torch.stack([layer[part] for layer in states]).to(inputs.dtype)
            for part in range(num_tensors(self.cell))
        ]  # (N, B, D) each
        outputs, last = self.sequence(inputs, tuple(stacked) if len(stacked) > 1 else stacked[0])
        return outputs, tuple(zip(*(last if len(stacked) > 1 else [last]), strict=True))

    def step(self, inputs: Tensor, states: LayerStates) -> tuple[Tensor, LayerStates]:
        """Advance by one position.

        Args:
            inputs: (B, D).
            states: Where each layer stands.

        Returns:
            The top layer's output (B, D) and where each layer stands now.
        """
        new_states = []
        hidden = inputs
        for layer in range(self.num_layers):
            if layer:
                hidden = self.dropout(hidden)
            state = self._advance(layer, hidden, states[layer])
            new_states.append(state)
            hidden = state[0]
        return hidden, tuple(new_states)

    def _advance(self, layer: int, inputs: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        weights = [
            getattr(self.sequence, f"{name}_l{layer}")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        if self.cell == "lstm":
            return tuple(STEPS[self.cell](inputs, state, *weights))
        return (STEPS[self.cell](inputs, state[0], *weights),)
