"""Transformer blocks for inference on a CPU by one call of a compiled kernel per step."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import relu, silu

from regard.attention.cache import KeyValue, KeyValueCache
from regard.attention.multihead import CrossAttention, SelfAttention
from regard.attention.positions import Positions, RotaryPositions
from regard.core.module import PackedLinear
from regard.core.native.bindings import (
    BlockStruct,
    KeyValueStruct,
    MapStruct,
    NormStruct,
    StepStruct,
    check,
    find_kernels,
)
from regard.core.native.kernels import ACTIVATIONS, NativeProduct, count_threads, is_plain
from regard.models.layers import FeedForward, GatedFeedForward, Residual
from regard.models.transformer import TransformerBlock, TransformerStack

MAX_CAUSAL = 64
"""Positions up to which causal attention is faster by the kernels, which compute row by row."""


class NativeStack:
    """The computation of a stack of transformer blocks.

    Args:
        stack: The stack, for which `is_supported` is true; its linear layers are packed.
    """

    def __init__(self, stack: TransformerStack) -> None:
        blocks: list[Any] = list(stack)
        attention = blocks[0].self_attention
        self._library = find_kernels()
        self._dim = attention.query_map.out_features
        self._num_heads = self._dim // attention.head_dim
        self._head_dim = attention.head_dim
        self._num_rounds = stack.num_rounds
        self._positions: Positions = attention.positions
        self._cross: list[Any] = [getattr(block, "cross_attention", None) for block in blocks]
        # The structures refer to the memory of these tensors.
        self._kept: list[Any] = []
        self._blocks = (BlockStruct * len(blocks))(*(self._build(block) for block in blocks))

    def _build(self, block: Any) -> BlockStruct:
        attention: Any = block.self_attention
        layer: Any = block.feed_forward
        maps = (attention.query_map, attention.key_map, attention.value_map)
        struct = BlockStruct(
            joint=self._keep(maps[0].join(maps)),
            self_output=self._keep(attention.output_map.product),
            self_norm=self._norm(block.self_residual),
            feed_norm=self._norm(block.feed_residual),
            output=self._keep(layer.output_map.product),
            is_norm_first=block.self_residual.is_norm_first,
            is_gated=type(layer) is GatedFeedForward,
        )
        if struct.is_gated:
            struct.hidden = self._keep(layer.gate_map.join((layer.gate_map, layer.hidden_map)))
        else:
            struct.hidden = self._keep(layer.hidden_map.product)
            struct.activation = ACTIVATIONS["relu" if layer.activation is relu else "silu"]
        if hasattr(block, "cross_attention"):
            struct.query = self._keep(block.cross_attention.query_map.product)
            struct.cross_output = self._keep(block.cross_attention.output_map.product)
            struct.cross_norm = self._norm(block.cross_residual)
        return struct

    def _keep(self, product: NativeProduct) -> MapStruct:
        self._kept.append(product)
        return product.struct

    def _norm(self, residual: Residual) -> NormStruct:
        norm: Any = residual.norm
        bias = getattr(norm, "bias", None)
        tensors = [one.detach().float() for one in (norm.weight, bias) if one is not None]
        self._kept.append(tensors)
        is_rms = isinstance(norm, nn.RMSNorm)
        pointers = [one.data_ptr() for one in tensors]
        return NormStruct(pointers[0], pointers[1] if len(pointers) > 1 else None, norm.eps, is_rms)

    def run(
        self,
        states: Tensor,
        *,
        mask: Tensor | None,
        is_causal: bool,
        caches: Sequence[KeyValueCache] | None,
        memory: Tensor | list[KeyValue] | None,
        memory_mask: Tensor | None,
    ) -> Tensor | None:
        """Map states (B, T, D), or return None if the kernel cannot.

        Arguments as in `TransformerStack`.
        """
        batch, rows, _ = states.shape
        num_keys = rows + (caches[0].num_past if caches else 0)
        if (
            not (is_plain(states) and batch)
            or (is_causal and rows > MAX_CAUSAL)
            or (mask is not None and (mask.dim() != 3 or mask.shape[2] != num_keys))
            or (memory is not None and not self._can_attend(batch, memory, memory_mask))
        ):
            return None
        states = states.clone(memory_format=torch.contiguous_format)
        step = StepStruct(
            blocks=ctypes.addressof(self._blocks),
            num_blocks=len(self._blocks),
            num_rounds=self._num_rounds,
            states=states.data_ptr(),
            batch=batch,
            rows=rows,
            dim=self._dim,
            num_heads=self._num_heads,
            is_causal=is_causal,
            threads=count_threads(batch * rows),
        )
        # What the structure refers to until the end of the call.
        kept: list[Any] = []
        if caches is not None:
            kept += self._add_caches(step, caches)
        if mask is not None:
            kept += _add_mask(step, mask)
        if memory is not None:
            assert memory_mask is not None
            kept += self._add_memory(step, memory, memory_mask)
        if isinstance(self._positions, RotaryPositions):
            kept += _add_rotations(step, self._positions, caches)
        check(self._library.run_blocks(ctypes.byref(step)))
        return states

    def _can_attend(self, batch: int, memory: Tensor | list[KeyValue], mask: Tensor | None) -> bool:
        """Return whether all blocks can attend to a memory of a batch."""
        states = memory[0][0] if isinstance(memory, list) else memory
        return (
            mask is not None
            and None not in self._cross
            and len(states) == len(mask) == batch
            and states.shape[-2] == mask.shape[1]
        )

    def _add_caches(self, step: StepStruct, caches: Sequence[KeyValueCache]) -> list[Any]:
        """Add the caches with room for the positions of this step."""
        sizes = {"num_tokens": step.rows, "head_dim": self._head_dim}
        pairs = [one.reserve(step.batch, self._num_heads, **sizes) for one in caches]
        structs = _structs(pairs)
        step.caches, step.num_keys = ctypes.addressof(structs), pairs[0][0].shape[2]
        return [pairs, structs]

    def _add_memory(
        self, step: StepStruct, memory: Tensor | list[KeyValue], mask: Tensor
    ) -> list[Any]:
        """Add the keys and values of cross-attention."""
        pairs = [_plain(self._project(memory, index)) for index in range(len(self._blocks))]
        structs, mask = _structs(pairs), mask.contiguous()
        step.memories, step.memory_length = ctypes.addressof(structs), mask.shape[1]
        step.memory_mask, step.memory_batch = mask.data_ptr(), mask.stride(0)
        return [pairs, structs, mask]

    def _project(self, memory: Tensor | list[KeyValue], index: int) -> KeyValue:
        """Return the cross-attention keys and values of a block."""
        if isinstance(memory, list):
            return memory[index]
        projected: KeyValue = self._cross[index].project(memory)
        return projected


def _add_mask(step: StepStruct, mask: Tensor) -> list[Any]:
    """Add a mask (B, T, K) or broadcastable."""
    assert mask.shape[2] == (step.num_keys if step.caches else step.rows)
    mask = mask if mask.stride(2) == 1 else mask.contiguous()
    step.mask = mask.data_ptr()
    step.mask_batch = mask.stride(0) if len(mask) > 1 else 0
    step.mask_row = mask.stride(1) if mask.shape[1] > 1 else 0
    return [mask]


def _add_rotations(
    step: StepStruct, positions: RotaryPositions, caches: Sequence[KeyValueCache] | None
) -> list[Any]:
    """Add cosines and sines of the positions of this step."""
    known = None if caches is None else caches[0].positions
    if known is None:
        first = 0 if caches is None else caches[0].num_past
        known = torch.arange(first, first + step.rows)
    tables = [table.float() for table in positions.rotations(known[-step.rows :])]
    step.cosines, step.sines = (table.data_ptr() for table in tables)
    return [tables]


def _structs(pairs: Sequence[KeyValue]) -> Any:
    """Return an array of the keys and values of all blocks."""
    return (KeyValueStruct * len(pairs))(
        *(
            KeyValueStruct(keys.data_ptr(), values.data_ptr(), *keys.stride()[:3])
            for keys, values in pairs
        )
    )


def _plain(pair: KeyValue) -> KeyValue:
    """Return keys and values in float32 with equal strides, whose heads are contiguous."""
    keys, values = (part.float() for part in pair)
    if keys.stride() == values.stride() and keys.stride(3) == 1:
        return keys, values
    return keys.contiguous(), values.contiguous()


def is_supported(stack: TransformerStack) -> bool:
    """Return whether the kernel computes all blocks of a stack with packed linear layers."""
    return len(stack) > 0 and all(
        type(block) is TransformerBlock and _is_block_supported(block) for block in stack
    )


def _is_block_supported(block: Any) -> bool:
    attention, layer = block.self_attention, block.feed_forward
    positions = attention.positions
    has_bias = type(positions).bias is not Positions.bias
    is_rotated = type(positions).rotate is not Positions.rotate
    parts = [attention, getattr(block, "cross_attention", attention)]
    residuals = [getattr(block, name, None) for name in ("self_residual", "cross_residual")]
    return (
        not has_bias
        and (not is_rotated or type(positions) is RotaryPositions)
        and [type(part) for part in parts] in ([SelfAttention, CrossAttention], [SelfAttention] * 2)
        and all(part.key_map.out_features == part.query_map.out_features for part in parts)
        and all(_is_native(part.query_map) for part in parts)
        and all(
            type(one.norm) in (nn.LayerNorm, nn.RMSNorm)
            and one.norm.weight is not None
            and one.norm.eps is not None
            for one in (*residuals, block.feed_residual)
            if one is not None
        )
        and (
            type(layer) is GatedFeedForward
            or (type(layer) is FeedForward and layer.activation in (relu, silu))
        )
    )


def _is_native(layer: Any) -> bool:
    return isinstance(layer, PackedLinear) and isinstance(layer.product, NativeProduct)
