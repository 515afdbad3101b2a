"""Recurrent layers and additive scores for inference on a CPU, faster than the originals."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from regard.attention.attend import masked_softmax, weighted_sum
from regard.attention.scores import AdditiveScore, Score
from regard.attention.spans import AttentionOutput, GlobalAttention, Prepared
from regard.core.module import Module
from regard.core.native import kernels
from regard.core.native.linear import Build, Product
from regard.models.interfaces import LayerStates
from regard.models.recurrent import CELLS, WEIGHTS, Recurrence, gru_cell, lstm_cell

MAX_EXPONENT = 40.0
"""Limit of exponents: their sum does not overflow, and tanh of half of it is 1."""


class PackedRecurrence(Module):
    """Stack of recurrent layers whose steps multiply by packed weights.

    Args:
        recurrence: The stack; its parameters are shared, not copied.
        build: A value of `PRODUCTS`.
    """

    def __init__(self, recurrence: Recurrence, build: Build) -> None:
        super().__init__()
        self.recurrence, self.sequence = recurrence, recurrence.sequence
        self.cell, self.dim = recurrence.cell, recurrence.dim
        self.num_layers = recurrence.num_layers
        self.layers: list[tuple[Product, ...]] = []
        for layer in range(recurrence.num_layers):
            weights = [getattr(recurrence.sequence, f"{name}_l{layer}") for name in WEIGHTS]
            input_weight, hidden_weight, input_bias, hidden_bias = weights
            if recurrence.cell == "gru":
                # The reset gate is a factor of a part of U h alone.
                maps = [(input_weight, input_bias), (hidden_weight, hidden_bias)]
            else:
                joint = torch.cat([input_weight, hidden_weight], dim=1)
                maps = [(joint, input_bias + hidden_bias)]
            self.layers.append(tuple(build(*one) for one in maps))

    def forward(self, inputs: Tensor, states: LayerStates) -> tuple[Tensor, LayerStates]:
        """Run over a full sequence, as `Recurrence.forward`."""
        return self.recurrence(inputs, states)

    def unroll(self, inputs: Tensor) -> "PackedSteps":
        """Prepare step-by-step processing, as `Recurrence.unroll`."""
        return PackedSteps(self, inputs)


class PackedSteps:
    """Steps of a packed recurrent stack.

    Args:
        packed: The stack.
        inputs: (B, T, D), the known part of the inputs.
    """

    def __init__(self, packed: PackedRecurrence, inputs: Tensor) -> None:
        self._layers, self._inputs = packed.layers, inputs
        self._cell = PACKED_CELLS[packed.recurrence.cell]

    def step(
        self, position: int, inputs: Tensor | None, states: LayerStates
    ) -> tuple[Tensor, LayerStates]:
        """Advance by one position; arguments and results are those of `Unrolled.step`."""
        known = self._inputs[:, position]
        current = known if inputs is None else torch.cat([known, inputs], dim=-1)
        new_states: list[tuple[Tensor, ...]] = []
        for products, state in zip(self._layers, states, strict=True):
            if len(products) == 2:
                from_input, from_hidden = products[0](current), products[1](state[0])
            else:
                from_input = products[0](torch.cat([current, state[0]], dim=-1))
                from_hidden = None
            new_states.append(self._cell(from_input, from_hidden, state))
            current = new_states[-1][0]
        return current, tuple(new_states)


def _gru(
    from_input: Tensor, from_hidden: Tensor | None, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    assert from_hidden is not None
    found = kernels.gru(from_input, from_hidden, state[0])
    return gru_cell(from_input, from_hidden, state) if found is None else (found,)


def _lstm(
    from_input: Tensor, from_hidden: Tensor | None, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    found = kernels.lstm(from_input, state[1]) if from_hidden is None else None
    return found or lstm_cell(from_input, from_hidden, state)


PACKED_CELLS = {**CELLS, "gru": _gru, "lstm": _lstm}
"""Functions as in `CELLS`, in one pass over the memory."""


class PackedAttention(GlobalAttention):
    """Global attention whose softmax and weighted sum are one kernel.

    Args:
        attention: The attention; its score is shared, not copied.
    """

    def __init__(self, attention: GlobalAttention) -> None:
        super().__init__(attention.score, half_width=attention.half_width)

    def forward(self, queries: Tensor, prepared: Prepared, steps: Tensor) -> AttentionOutput:
        """Attend from each query, as `GlobalAttention.forward`."""
        values, mask = prepared["values"], prepared["mask"]
        scores = self.score(queries, prepared["keys"])
        found = kernels.mix(scores, values, mask)
        if found is None:
            weights = masked_softmax(scores, mask[:, None])
            found = weighted_sum(weights, values), weights
        return AttentionOutput(*found)


class PackedAdditiveScore(Score):
    """Additive score with tanh(a + b) = 1 - 2 / (1 + exp(2a) exp(2b)).

    The exponentials of keys are computed once per sentence and those of queries once per step, so
    that only a product and a reciprocal are left for each pair, instead of a tanh.

    Args:
        score: The score; its layers are shared, not copied.
    """

    def __init__(self, score: AdditiveScore) -> None:
        super().__init__(score.query_dim, score.key_dim, dim=score.dim)
        self.query_map, self.key_map, self.weight = score.query_map, score.key_map, score.weight

    def prepare(self, keys: Tensor) -> Tensor:
        """Compute exp(2 U k), once per sentence."""
        return _exponential(self.key_map(keys))

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Score each query against each key, (..., Q, K)."""
        mapped = self.query_map(queries)
        found = kernels.score_additively(mapped, prepared, self.weight.weight, limit=MAX_EXPONENT)
        if found is not None:
            return found
        exponentials = _exponential(mapped)
        pairs = exponentials[..., :, None, :] * prepared[..., None, :, :]  # (..., Q, K, D)
        weight = self.weight.weight
        return weight.sum() - 2 * linear(pairs.add_(1).reciprocal_(), weight).squeeze(-1)


def _exponential(mapped: Tensor) -> Tensor:
    return (2 * mapped).clamp_(-MAX_EXPONENT, MAX_EXPONENT).exp_()
