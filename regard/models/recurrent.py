"""Recurrent stacks over full sequences or step by step, and a bidirectional LSTM."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.core.config import Config, DropoutRate, Positive
from regard.core.device import has_native_bf16
from regard.core.dropout import Dropout
from regard.core.module import Module
from regard.core.native.linear import linear
from regard.models.interfaces import LayerStates

Cell = Literal["vanilla", "gru", "lstm"]

SEQUENCES: dict[Cell, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {
    "vanilla": nn.RNN,
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}
WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
"""Names of the weights of a recurrent layer of torch, without their suffixes."""
SATURATED = 1e4
"""Input of a sigmoid whose value is 1 at every precision; with a minus sign, 0."""


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


def run_padded(
    recurrence: nn.RNNBase, inputs: Tensor, mask: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run recurrent layers of torch over padded sequences, as over packed ones.

    The backward direction reverses each sentence within its length, so the states of a sentence do
    not depend on padding or on the other sentences of the batch. Shapes depend on the shape of the
    batch only, and lengths stay on the device.

    Args:
        recurrence: The layers, batch first.
        inputs: (B, S, D).
        mask: (B, S), True = a real position; padding is at the end.

    Returns:
        The states (B, S, D), zeros at padding, and the final states of layers and directions: h
        (N, B, D) and, for an LSTM, c.
    """
    order = reversed_positions(mask.sum(1), mask.shape[1])
    states, final = inputs, []
    for layer in range(recurrence.num_layers):
        if layer:
            states = nn.functional.dropout(states, recurrence.dropout, recurrence.training)
        directions = []
        for suffix in ("", "_reverse")[: 1 + recurrence.bidirectional]:
            weights = [getattr(recurrence, f"{name}_l{layer}{suffix}") for name in WEIGHTS]
            ordered = take_positions(states, order) if suffix else states
            outputs, last = _run_layer(ordered, mask, weights=weights, like=recurrence)
            directions.append(take_positions(outputs, order) if suffix else outputs)
            final.append(last)
        states = torch.cat(directions, dim=-1) * mask[..., None]  # (B, S, D)
    return states, tuple(torch.stack(parts) for parts in zip(*final, strict=True))


def reversed_positions(lengths: Tensor, length: int) -> Tensor:
    """Return positions (B, S) that reverse each sentence within its length (B,).

    Positions after that are unchanged. The permutation is its own inverse.
    """
    positions = torch.arange(length, device=lengths.device)
    last = lengths[:, None] - 1
    return torch.where(positions <= last, last - positions, positions)  # (B, S)


def take_positions(states: Tensor, positions: Tensor) -> Tensor:
    """Return the states (B, L, D) of (B, S, D) at positions (B, L)."""
    return states.gather(1, positions[..., None].expand(-1, -1, states.shape[-1]))


def _run_layer(
    inputs: Tensor, mask: Tensor, *, weights: list[Tensor], like: nn.RNNBase
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run one layer with the cell of `like` from left to right.

    Returns:
        The states (B, S, D), and the final h and, for an LSTM, c, (B, D) each.
    """
    zeros = inputs.new_zeros(1, len(inputs), like.hidden_size)
    # Biases, one layer, no dropout, mode, one direction, batch first.
    options = (True, 1, 0.0, like.training, False, True)
    last = mask.sum(1, keepdim=True) - 1
    if like.mode != "LSTM":
        run = torch.gru if like.mode == "GRU" else torch.rnn_tanh
        states, _ = run(inputs, zeros, _compact(weights), *options)
        return states, (take_positions(states, last)[:, 0],)
    # Only the c of the last position is returned. An input that is 1 at padding closes the input
    # gate and opens the forget gate there, so that c stays the one of the last real position.
    column = weights[0].new_zeros(len(weights[0]), 1)
    for gate, value in zip(column.chunk(4), (-SATURATED, SATURATED), strict=False):
        gate.fill_(value)
    weights = [torch.cat([weights[0], column], dim=1), *weights[1:]]
    flagged = torch.cat([inputs, ~mask[..., None]], dim=-1)
    compact = _compact(weights)
    states, _, cell = run_lstm(
        lambda sequence, start: torch.lstm(sequence, start, compact, *options),
        flagged,
        (zeros, zeros),
    )
    return states, (take_positions(states, last)[:, 0], cell[0])


def run_lstm(
    layers: Callable[[Tensor, tuple[Tensor, ...]], Any], inputs: Tensor, states: tuple[Tensor, ...]
) -> Any:
    """Run layers of an LSTM; in float32 if mixed precision has no LSTM on this processor.

    oneDNN computes an LSTM in bf16 on processors with AVX-512 only.

    Args:
        layers: Function of inputs and initial states.
        inputs: (B, S, D).
        states: Initial states, h and c.
    """
    is_cpu = inputs.device.type == "cpu"
    if not is_cpu or not torch.is_autocast_enabled("cpu") or has_native_bf16(inputs.device):
        return layers(inputs, states)
    with torch.autocast("cpu", enabled=False):
        return layers(inputs.float(), tuple(state.float() for state in states))


def _compact(weights: list[Tensor]) -> list[Tensor]:
    """Return weights in one block of memory on a GPU, where cuDNN would copy and warn otherwise."""
    if not weights[0].is_cuda:
        return weights
    block = torch.cat([weight.flatten() for weight in weights])
    parts = torch.split(block, [weight.numel() for weight in weights])
    return [part.view_as(weight) for part, weight in zip(parts, weights, strict=True)]


class BidirectionalLSTM(Module):
    """Bidirectional LSTM layer."""

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
        order = reversed_positions(mask.sum(1), mask.shape[1])
        forward, (first, _) = run_padded(self.forwards, inputs, mask)
        backward, (last, _) = run_padded(self.backwards, take_positions(inputs, order), mask)
        states = torch.cat([forward, take_positions(backward, order)], dim=-1)
        return states, torch.cat([first[0], last[0]], dim=-1)


class Recurrence(Module):
    """Stack of recurrent layers, run over a sequence or step by step with the same result.

    Calling it runs torch's fused kernel over a full sequence. `unroll` applies the same weights
    step by step, for decoders whose next input depends on their last output.
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
        if self.cell != "lstm":
            outputs, hidden = self.sequence(inputs, stacked[0])
            return outputs, tuple((state,) for state in hidden)
        outputs, last = run_lstm(self.sequence, inputs, tuple(stacked))
        return outputs, tuple(zip(*last, strict=True))

    def step(self, inputs: Tensor, states: LayerStates) -> tuple[Tensor, LayerStates]:
        """Advance by one position.

        Args:
            inputs: (B, D).
            states: State of each layer.

        Returns:
            The output of the top layer (B, D) and the new state of each layer.
        """
        return self.unroll(inputs[:, None]).step(0, None, states)

    def unroll(self, inputs: Tensor) -> "Unrolled":
        """Prepare step-by-step processing.

        Args:
            inputs: (B, T, D), the inputs of all steps that are known in advance: the first part of
                the input vectors, or all of them.
        """
        return Unrolled(self, inputs)


class Unrolled:
    """Steps of a recurrent stack over a number of positions known in advance.

    The products of weights and known inputs are computed for all positions at once.

    Args:
        recurrence: The stack.
        inputs: (B, T, D), the known part of the inputs.
    """

    def __init__(self, recurrence: Recurrence, inputs: Tensor) -> None:
        self._cell = CELLS[recurrence.cell]
        self._dropout = recurrence.dropout
        shape = (inputs.shape[1], inputs.shape[0], -1)
        known = inputs.transpose(0, 1)  # (T, B, D)
        self._layers = []
        for layer in range(recurrence.num_layers):
            weights = [getattr(recurrence.sequence, f"{name}_l{layer}") for name in WEIGHTS]
            input_weight, hidden_weight, input_bias, hidden_bias = weights
            if layer:
                from_input = input_bias.expand(shape)
            else:
                known_weight, input_weight = input_weight.tensor_split([inputs.shape[-1]], dim=1)
                from_input = linear(known, known_weight, input_bias)  # (T, B, D)
            from_hidden = hidden_bias.expand(shape)
            self._layers.append(
                (StepLinear(input_weight, from_input), StepLinear(hidden_weight, from_hidden))
            )

    def step(
        self, position: int, inputs: Tensor | None, states: LayerStates
    ) -> tuple[Tensor, LayerStates]:
        """Advance by one position.

        Args:
            position: The position, from 0 to T - 1 in this order.
            inputs: (B, D), the rest of the inputs; None if all are known.
            states: State of each layer.

        Returns:
            The output of the top layer (B, D) and the new state of each layer.
        """
        new_states: list[tuple[Tensor, ...]] = []
        for (input_map, hidden_map), state in zip(self._layers, states, strict=True):
            if new_states:
                inputs = self._dropout(new_states[-1][0])
            from_input = input_map(position, inputs)
            new_states.append(self._cell(from_input, hidden_map(position, state[0]), state))
        return new_states[-1][0], tuple(new_states)


class StepLinear:
    """Linear map of inputs that are computed step by step, plus known terms.

    The gradient of the weight is computed for all steps at once: one product of large matrices
    instead of a product and a sum of matrices of the weight's size per step.

    Args:
        weight: (D, D), outputs × inputs.
        known: (T, B, D), the terms to add at each step, such as a bias.
    """

    def __init__(self, weight: Tensor, known: Tensor) -> None:
        self._inputs: list[Tensor] = []
        self._weight = weight.detach().t()
        terms: Tensor = _WeightGradient.apply(known, weight, self._inputs)  # type: ignore[no-untyped-call]
        self._known = terms.unbind(0)

    def __call__(self, position: int, inputs: Tensor | None) -> Tensor:
        """Map the inputs (B, D) of a position, or none, to (B, D). Each position is used once."""
        if inputs is None:
            return self._known[position]
        self._inputs.append(inputs.detach())
        return torch.addmm(self._known[position], inputs, self._weight)


class _WeightGradient(torch.autograd.Function):
    """Identity on the known terms whose backward pass computes the gradient of the weight."""

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any, known: Tensor, weight: Tensor, inputs: list[Tensor]
    ) -> Tensor:
        ctx.inputs = inputs
        ctx.weight_dtype = weight.dtype
        return known.view_as(known)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        if not ctx.inputs:
            return gradient, None, None
        inputs = torch.stack(ctx.inputs).flatten(0, 1).to(gradient.dtype)  # (T·B, D)
        product = gradient.flatten(0, 1).t() @ inputs
        return gradient, product.to(ctx.weight_dtype), None


def vanilla_cell(
    from_input: Tensor, from_hidden: Tensor | None, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Compute h = tanh(W x + U h), from both terms or their sum alone."""
    return (_add(from_input, from_hidden).tanh(),)


def gru_cell(
    from_input: Tensor, from_hidden: Tensor | None, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Compute h of a GRU from W x and U h, (B, 3 D) each: reset gate, update gate, new state."""
    assert from_hidden is not None
    hidden = state[0].to(from_input.dtype)
    if from_input.is_cuda:
        new_hidden, _ = torch.ops.aten._thnn_fused_gru_cell(from_input, from_hidden, hidden)
        return (new_hidden,)
    gates_dim = 2 * hidden.shape[-1]
    input_gates, input_new = from_input.tensor_split([gates_dim], dim=1)
    hidden_gates, hidden_new = from_hidden.tensor_split([gates_dim], dim=1)
    reset, update = (input_gates + hidden_gates).sigmoid().chunk(2, dim=1)
    new = torch.addcmul(input_new, reset, hidden_new).tanh()
    return (torch.lerp(new, hidden, update),)


def lstm_cell(
    from_input: Tensor, from_hidden: Tensor | None, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Compute h and c of an LSTM from W x and U h, (B, 4 D) each: gates i, f, g and o.

    Both may be given as one sum.
    """
    cell = state[1].to(from_input.dtype)
    if from_input.is_cuda:
        new_hidden, new_cell, _ = torch.ops.aten._thnn_fused_lstm_cell(
            from_input, from_hidden, cell
        )
        return new_hidden, new_cell
    i, f, g, o = _add(from_input, from_hidden).chunk(4, dim=1)
    new = torch.addcmul(f.sigmoid() * cell, i.sigmoid(), g.tanh())
    return o.sigmoid() * new.tanh(), new


def _add(from_input: Tensor, from_hidden: Tensor | None) -> Tensor:
    return from_input if from_hidden is None else from_input + from_hidden


CELLS: dict[Cell, Callable[[Tensor, Tensor | None, tuple[Tensor, ...]], tuple[Tensor, ...]]] = {
    "vanilla": vanilla_cell,
    "gru": gru_cell,
    "lstm": lstm_cell,
}
"""Functions of W x, U h and the state that return the new state, by cell."""
