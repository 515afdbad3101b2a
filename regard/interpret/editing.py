"""Attention weights set by hand: `with edit_weights(decoder, edit):`.

Inside the block, the context is recomputed from the edited weights. The models do not know of it:
hooks and wrapped methods of the attention modules change what they compute.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention, weighted_sum
from regard.attention.cache import KeyValue
from regard.attention.multihead import MultiHeadAttention
from regard.attention.spans import AttentionOutput, GlobalAttention
from regard.core.errors import ConfigError
from regard.models.decoders.prefix_lm import PrefixAttention


@dataclass(frozen=True)
class WeightEdit:
    """An attention weight that is set by hand, in one or all layers and heads."""

    target_position: int
    """Index of the token of the output whose step is edited."""
    source_position: int
    """Index of the source position."""
    weight: float
    """The new weight, from 0 to 1. The others are scaled, so that the sum stays the same."""
    layer: int | None = None
    """Index of the layer; None = all layers."""
    head: int | None = None
    """Index of the head; None = all heads."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ConfigError(f"`weight` must be from 0 to 1, but is {self.weight:g}.")

    def apply(self, row: Tensor, num_source: int) -> Tensor:
        """Return edited weights of one query.

        Args:
            row: (..., K), of which the first `num_source` are weights on the source.
            num_source: S.
        """
        total = row.sum(-1, keepdim=True)
        others = row.clone()
        others[..., self.source_position] = 0
        rest = others.sum(-1, keepdim=True)
        # If all weight was on this position, the others share the rest equally.
        equal = torch.zeros_like(row)
        equal[..., :num_source] = 1
        equal[..., self.source_position] = 0
        equal = equal / equal.sum(-1, keepdim=True).clamp(min=1)
        shares = torch.where(rest > 0, others / rest.clamp(min=1e-12), equal)
        edited = shares * (total - self.weight).clamp(min=0)
        edited[..., self.source_position] = self.weight
        return edited


@contextmanager
def edit_weights(decoder: nn.Module, edit: WeightEdit, *, num_source: int) -> Iterator[None]:
    """Edit the attention weights of a decoder on its source, for one hypothesis of one sentence.

    Args:
        decoder: The decoder. Steps are counted from the beginning of the block.
        edit: The weight.
        num_source: Number of source positions.
    """
    layers = attention_layers(decoder)
    if edit.layer is not None:
        _check_index("layer", edit.layer, len(layers))
        layers = [layers[edit.layer]]
    with ExitStack() as stack:
        for layer in layers:
            row = _Row(edit, num_source)
            if isinstance(layer, GlobalAttention):
                handle = layer.register_forward_hook(partial(_edit_output, row))
                stack.callback(handle.remove)
            else:
                stack.enter_context(_edited_heads(layer, row))
        yield


def attention_layers(decoder: nn.Module) -> list[Any]:
    """Return the layers of a decoder that attend to the source and whose weights can be edited."""
    layers = [
        part
        for part in decoder.modules()
        if isinstance(part, GlobalAttention | MultiHeadAttention) and not part.is_self
    ]
    if not layers:
        raise ConfigError(
            "The decoder of this run has no attention to its source, so there is no weight to set."
        )
    return layers


class _Row:
    """The edited row of a layer, which is one of the queries of one of its calls."""

    def __init__(self, edit: WeightEdit, num_source: int) -> None:
        self._edit, self._num_source, self._num_seen = edit, num_source, 0

    def edited(self, weights: Tensor) -> Tensor:
        """Return the weights of the next queries, (B, Q, K) or (B, H, Q, K), edited."""
        index = self._edit.target_position - self._num_seen
        self._num_seen += weights.shape[-2]
        if not 0 <= index < weights.shape[-2]:
            return weights
        edit, weights = self._edit, weights.clone()
        heads: slice | int = slice(None)
        if edit.head is not None:
            _check_index("head", edit.head, weights.shape[1] if weights.dim() == 4 else 1)
            heads = edit.head if weights.dim() == 4 else 0
        rows = weights[:, heads] if weights.dim() == 4 else weights
        rows[..., index, :] = edit.apply(rows[..., index, :], self._num_source)
        return weights


def _edit_output(
    row: _Row, _: Attention, inputs: tuple[Any, ...], output: AttentionOutput
) -> AttentionOutput:
    weights = row.edited(output.weights)
    return output._replace(context=weighted_sum(weights, inputs[1]["values"]), weights=weights)


@contextmanager
def _edited_heads(layer: MultiHeadAttention, row: _Row) -> Iterator[None]:
    """Wrap `attend_heads` of a layer."""
    attend_heads: Callable[..., tuple[Tensor, Tensor | None]] = layer.attend_heads

    def attend_edited(
        queries: Tensor,
        key_value: KeyValue,
        *,
        mask: Tensor | None,
        is_causal: bool,
        key_positions: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        options = {"mask": mask, "is_causal": is_causal, "key_positions": key_positions}
        # The decoder-only model encodes the source without a mask.
        if isinstance(layer, PrefixAttention) and mask is None:
            return attend_heads(queries, key_value, **options)
        needs_weights, layer.needs_weights = layer.needs_weights, True
        try:
            _, weights = attend_heads(queries, key_value, **options)
        finally:
            layer.needs_weights = needs_weights
        assert weights is not None
        weights = row.edited(weights)
        values = key_value[1].to(queries.dtype)
        values = values.repeat_interleave(queries.shape[1] // values.shape[1], dim=1)
        return weighted_sum(weights, values), weights if needs_weights else None

    layer.__dict__["attend_heads"] = attend_edited
    try:
        yield
    finally:
        del layer.__dict__["attend_heads"]


def _check_index(name: str, index: int, num: int) -> None:
    if not 0 <= index < num:
        raise ConfigError(f"`{name}` must be from 0 to {num - 1}, but is {index}.")
