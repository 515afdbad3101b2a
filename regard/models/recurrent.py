"""Recurrent stacks over full sequences or step by step, and a bidirectional LSTM."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.core.config import Config, DropoutRate, Positive
from regard.core.dropout import Dropout
from regard.core.module import Module
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
    """Hyperparameters of recurrent stacks over tokens."""

    cell: Cell = "gru"
    """Recurrent cell."""
    embedding_dim: Positive = 256
    """Width of the embeddings."""
    dim: Positive = 256
    """Width of the hidden states per direction."""
    num_layers: Positive = 1
    """Number of recurrent layers."""
    dropout: DropoutRate = 0.0
    """Dropout probability of the embeddings, between the layers, and of the output states."""


def num_tensors(cell: Cell) -> int:
    """Return the number of state tensors of a layer: h, and c for an LSTM."""
    return 2 if cell == "lstm" else 1


def run_packed(
    recurrence: nn.RNNBase, inputs: Tensor, lengths: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run recurrent layers of torch over packed sequences.

    Packing excludes padding in both directions, so the states of a sentence do not depend on the
    other sentences of the batch. It needs the lengths on the CPU in descending order; sorting there
    and copying asynchronously avoids a synchronisation with the device.

    Args:
        recurrence: The layers, batch first.
        inputs: (B, S, D).
        lengths: (B,), on the CPU.

    Returns:
        The states (B, S, D), zeros at padding, and the final states of layers and directions: h
        (N, B, D) and, for an LSTM, c.
    """
    descending, rows = lengths.sort(descending=True, stable=True)
    inverse = rows.argsort().to(inputs.device, non_blocking=True)
    rows = rows.to(inputs.device, non_blocking=True)
    packed = pack_padded_sequence(inputs[rows], descending, batch_first=True)
    outputs, last = recurrence(packed)
    states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
    parts = last if isinstance(last, tuple) else (last,)
    return states[inverse], tuple(part[:, inverse] for part in parts)


class BidirectionalLSTM(Module):
    """Bidirectional LSTM layer without packing.

    Sequences are reversed within their length, so padding does not affect the states. On a CPU, the
    backward pass of a packed layer takes several times as long if lengths differ.
    """

    def __init__(self, input_dim: int, dim: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(input_dim, dim, batch_first=True)
        self.backwards = nn.LSTM(input_dim, dim, batch_first=True)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Run over full sequences.

        Args:
            inputs: (B, S, D).
            mask: (B, S), True = a real position; padding is at the end.

        Returns:
            The states (B, S, D), zeros at padding, and the final states of both directions, (B, D).
        """
        lengths = mask.sum(1, keepdim=True)
        positions = torch.arange(mask.shape[1], device=mask.device)
        # The permutation is its own inverse, so it also restores the order of the states.
        order = torch.where(mask, lengths - 1 - positions, positions)[..., None]  # (B, S, 1)
        forward, _ = self.forwards(inputs)
        reversed_, _ = self.backwards(inputs.gather(1, order.expand_as(inputs)))
        backward = reversed_.gather(1, order.expand_as(reversed_))
        states = torch.cat([forward, backward], dim=-1) * mask[..., None]
        last = (lengths - 1)[..., None].expand(-1, 1, forward.shape[-1])
        return states, torch.cat([forward.gather(1, last)[:, 0], backward[:, 0]], dim=-1)


class Recurrence(Module):
    """Stack of recurrent layers, run over a sequence or step by step with the same result.

    Calling it runs torch's fused kernel over a full sequence. `step` applies the same weights to
    one position, for decoders whose next input depends on their last output.
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
        """Run over a full sequence.

        Args:
            inputs: (B, T, D).
            states: Initial state of each layer.

        Returns:
            The outputs of the top layer (B, T, D) and the final state of each layer.
        """
        # With mixed precision, states may have several dtypes; the kernels need one.
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
            states: State of each layer.

        Returns:
            The output of the top layer (B, D) and the new state of each layer.
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
