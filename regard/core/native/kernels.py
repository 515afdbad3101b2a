"""Kernels on tensors: linear maps with packed weights, log-softmax, the largest continuations.

Each row of a result depends on its own inputs alone, to the last bit.
"""

import ctypes
import functools
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from regard.core.native.bindings import AdvanceStruct, MapStruct, check, find_kernels

Precision: TypeAlias = Literal["fp32", "bf16", "int8"]
PRECISIONS: dict[str, int] = {"fp32": 0, "bf16": 1, "int8": 2}
GROUPS = {"fp32": 1, "bf16": 2, "int8": 4}
"""Inputs of an output that lie side by side in a packed weight."""
ACTIVATIONS = {"none": 0, "relu": 1, "silu": 2}
ZERO_POINT = 128
"""Quantised input that stands for zero."""


MIN_THREAD_ROWS = 256
"""Rows from which several threads are faster than one."""


def count_threads(num_rows: int) -> int:
    """Return the number of threads for a number of rows."""
    return torch.get_num_threads() if num_rows >= MIN_THREAD_ROWS else 1


@functools.cache
def is_fast(precision: Precision) -> bool:
    """Return whether there is a library whose products in a precision are the fastest here.

    On processors with matrix units (AMX), those of oneDNN in bf16 and int8 are.
    """
    library = find_kernels()
    if library is None:
        return False
    has_matrix_units = precision != "fp32" and torch.cpu._is_amx_tile_supported()
    return (
        bool(library.supported_precisions() >> PRECISIONS[precision] & 1) and not has_matrix_units
    )


class NativeProduct:
    """Linear map of float32 inputs (..., D) to (..., E) in a precision.

    In bf16 and int8, inputs are converted row by row, and sums are float32 and int32.

    Args:
        weight: (E, D).
        bias: (E,), or None.
        precision: The precision.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, precision: Precision) -> None:
        self._library = find_kernels()
        weight = weight.detach().float()
        self.num_outputs, self.num_inputs = weight.shape
        num_inputs = self.num_inputs
        size = int(self._library.panel_size())
        group = GROUPS[precision]
        rows, columns = -self.num_outputs % size, -num_inputs % group
        padded = torch.nn.functional.pad(weight, (0, columns, 0, rows))
        scales = offsets = None
        if precision == "int8":
            scales = row_scales(padded)[:, 0].contiguous()
            padded = (padded / scales[:, None]).round().to(torch.int8)
            offsets = ZERO_POINT * padded.sum(1, dtype=torch.int32)
        elif precision == "bf16":
            padded = padded.bfloat16()
        panels = padded.view(-1, size, (num_inputs + columns) // group, group).transpose(1, 2)
        bias = None if bias is None else bias.detach().float().contiguous()
        # The structure refers to the memory of these tensors.
        self._tensors = (panels.contiguous(), bias, scales, offsets)
        pointers = (None if one is None else one.data_ptr() for one in self._tensors)
        self.struct = MapStruct(*pointers, num_inputs, self.num_outputs, PRECISIONS[precision])
        self._address = ctypes.addressof(self.struct)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Map (..., D) to (..., E)."""
        return self.map(inputs)

    def map(self, inputs: Tensor, activation: str = "none") -> Tensor:
        """Map (..., D) to (..., E) and activate the outputs."""
        if inputs.shape[-1] != self.num_inputs:
            raise ValueError(f"inputs must have {self.num_inputs} columns, but {inputs.shape=}")
        if inputs.requires_grad and torch.is_grad_enabled():
            raise RuntimeError("packed weights have no gradients: disable them, or do not pack")
        inputs = inputs.float().contiguous()
        outputs = inputs.new_empty(*inputs.shape[:-1], self.num_outputs)
        num_rows = inputs.shape[:-1].numel()
        code = self._library.multiply(
            self._address,
            inputs.data_ptr(),
            num_rows,
            count_threads(num_rows),
            outputs.data_ptr(),
            ACTIVATIONS[activation],
        )
        check(code)
        return outputs


def row_scales(rows: Tensor) -> Tensor:
    """Return the scale (N, 1) of each row (N, D), at which its largest value is 127."""
    return rows.abs().amax(1, keepdim=True).clamp_(min=1e-8) / 127


def log_softmax(logits: Tensor, banned: Tensor) -> Tensor | None:
    """Replace logits (..., V) by log-probabilities in place; None if the kernel cannot.

    Args:
        logits: The logits, of a single use.
        banned: (N,) tokens that get -inf afterwards.
    """
    library = _find_for(logits)
    if library is None:
        return None
    vocab = logits.shape[-1]
    num_rows = logits.numel() // vocab
    library.log_softmax(logits.data_ptr(), num_rows, vocab, banned.data_ptr(), len(banned))
    return logits


def find_top(totals: Tensor, log_probs: Tensor, k: int) -> tuple[Tensor, Tensor] | None:
    """Return the k largest sums of each sentence and their indices; None if the kernel cannot.

    Args:
        totals: (B, W), a term for each row.
        log_probs: (B·W, V).
        k: Number of sums, at most W·V.
    """
    library = _find_for(log_probs, totals)
    if library is None:
        return None
    batch, beams = totals.shape
    values = totals.new_empty(batch, k)
    indices = torch.empty(batch, k, dtype=torch.long)
    library.find_top(
        totals.data_ptr(),
        log_probs.data_ptr(),
        batch,
        beams,
        log_probs.shape[1],
        k,
        values.data_ptr(),
        indices.data_ptr(),
    )
    return values, indices


def advance(
    totals: Tensor, log_probs: Tensor, limits: Tensor, *, length: int, end: int
) -> tuple[Tensor, ...] | None:
    """Return the tensors of a step of beam search, in the order of `Step`; None if it cannot.

    Args:
        totals: (B, W) log-probability of each beam.
        log_probs: (B·W, V).
        limits: (B,) maximum number of tokens.
        length: Number of tokens after this step.
        end: The end token.
    """
    library = _find_for(log_probs, totals)
    if library is None or log_probs.shape[1] < 2 or limits.dtype != torch.long:
        return None
    batch, beams = totals.shape
    limits = limits.contiguous()
    floats, integers = totals.new_empty, limits.new_empty
    wide = (batch, 2 * beams)
    is_end = torch.empty(wide, dtype=torch.bool)
    is_finished = torch.empty(batch, beams, dtype=torch.bool)
    outputs = (
        *(floats(wide), floats(wide), integers(wide), integers(wide), is_end, is_finished),
        *(floats(batch, beams), integers(batch, beams), floats(batch, beams)),
        *(integers(batch, beams), integers(batch, beams)),
    )
    inputs = (totals.data_ptr(), log_probs.data_ptr(), limits.data_ptr())
    sizes = (batch, beams, log_probs.shape[1], length, end)
    struct = AdvanceStruct(*inputs, *sizes, *(one.data_ptr() for one in outputs))
    library.advance(ctypes.byref(struct))
    return outputs


def stop(
    finished: Tensor, active: Tensor, *, num_ended: Tensor, best: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return the number of results, the best one and whether a sentence is done; None if it cannot.

    Args:
        finished: (B, W) log-probabilities of the results of this step.
        active: (B, W) log-probabilities of the active beams.
        num_ended: (B, 1) number of results before.
        best: (B, 1) value of the best one.
        scale: Scale of the log-probabilities.
    """
    library = _find_for(finished, active, best)
    if library is None or not num_ended.is_contiguous():
        return None
    outputs = (torch.empty_like(num_ended), torch.empty_like(best))
    is_done = torch.empty(len(finished), dtype=torch.bool)
    library.stop(
        *(finished.data_ptr(), active.data_ptr(), *finished.shape, scale),
        *(one.data_ptr() for one in (num_ended, best, *outputs, is_done)),
    )
    return (*outputs, is_done)


def gru(from_input: Tensor, from_hidden: Tensor, state: Tensor) -> Tensor | None:
    """Return the next state (N, D) of a GRU from W x and U h, (N, 3 D); None if it cannot."""
    library = _find_for(from_input, from_hidden, state)
    if library is None:
        return None
    output = torch.empty_like(state)
    inputs = (from_input.data_ptr(), from_hidden.data_ptr(), state.data_ptr())
    library.gru(*inputs, *state.shape, output.data_ptr())
    return output


def lstm(sums: Tensor, cell: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the next state and cell (N, D) of an LSTM from W x + U h, (N, 4 D)."""
    library = _find_for(sums, cell)
    if library is None:
        return None
    state, following = torch.empty_like(cell), torch.empty_like(cell)
    outputs = (state.data_ptr(), following.data_ptr())
    library.lstm(sums.data_ptr(), cell.data_ptr(), *cell.shape, *outputs)
    return state, following


def score_additively(
    queries: Tensor, exponentials: Tensor, weight: Tensor, *, limit: float
) -> Tensor | None:
    """Return the additive scores (B, Q, K) of queries and keys; None if the kernel cannot.

    Args:
        queries: (B, Q, D), mapped queries.
        exponentials: (B, K, D), the exponentials of twice the mapped keys.
        weight: (1, D).
        limit: Maximum absolute value of exponents.
    """
    library = _find_for(queries, exponentials, weight)
    if library is None or queries.dim() != 3:
        return None
    batch, num_queries, dim = queries.shape
    num_keys = exponentials.shape[1]
    scores = queries.new_empty(batch, num_queries, num_keys)
    inputs = (queries.data_ptr(), exponentials.data_ptr(), weight.data_ptr(), limit)
    sizes = (batch, num_queries, num_keys, dim)
    check(library.score_additively(*inputs, *sizes, scores.data_ptr()))
    return scores


def mix(scores: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return contexts (B, Q, D) and attention weights (B, Q, K); None if the kernel cannot.

    Args:
        scores: (B, Q, K).
        values: (B, K, D).
        mask: (B, K), True = may attend.
    """
    library = _find_for(scores, values)
    if library is None or not mask.is_contiguous():
        return None
    batch, num_queries, num_keys = scores.shape
    dim = values.shape[2]
    weights, context = torch.empty_like(scores), scores.new_empty(batch, num_queries, dim)
    inputs = (scores.data_ptr(), mask.data_ptr(), values.data_ptr())
    sizes = (batch, num_queries, num_keys, dim)
    check(library.mix(*inputs, *sizes, weights.data_ptr(), context.data_ptr()))
    return context, weights


def _find_for(*tensors: Tensor) -> Any:
    """Return the library if the kernels can compute with all tensors, or None."""
    return find_kernels() if all(map(is_plain, tensors)) else None


def is_plain(tensor: Tensor) -> bool:
    """Return whether the kernels can read a tensor, and no gradient is needed."""
    return (
        tensor.dtype == torch.float32
        and tensor.device.type == "cpu"
        and tensor.is_contiguous()
        and not (tensor.requires_grad and torch.is_grad_enabled())
    )
