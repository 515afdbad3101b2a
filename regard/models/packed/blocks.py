"""Transformer blocks for inference on a CPU, in which a few calls of torch do the work of many.

A step of search computes a few rows, so that the calls themselves take most of its time.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, relu, scaled_dot_product_attention

from regard.attention.attend import Attention, attend
from regard.attention.cache import KeyValue, KeyValueCache
from regard.attention.multihead import CrossAttention, MultiHeadAttention, SelfAttention
from regard.attention.positions import Positions
from regard.core.module import PackedLinear
from regard.models.layers import FeedForward, Residual
from regard.models.packed import native
from regard.models.transformer import TransformerBlock, TransformerStack


class PackedStack(TransformerStack):
    """Stack of packed transformer blocks.

    Weights of attention are computed, and hooks called, by the blocks themselves.

    Args:
        stack: The stack, whose linear layers are packed; its parameters are shared, not copied.
    """

    def __init__(self, stack: TransformerStack) -> None:
        super().__init__(stack, num_rounds=stack.num_rounds)
        self._native = native.NativeStack(self) if native.is_supported(self) else None
        is_packed = self._native is None and _all_supported(self)
        self._packed = [_PackedBlock(block) for block in self] if is_packed else None
        self._attentions = [part for part in self.modules() if isinstance(part, Attention)]

    def forward(
        self,
        states: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        caches: Sequence[KeyValueCache] | None = None,
        memory: Tensor | list[KeyValue] | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Map states (B, T, D) to states of the same shape; arguments as in `TransformerStack`."""
        needs_weights = any(one.needs_weights for one in self._attentions)
        arguments: dict[str, Any] = {
            "mask": mask,
            "is_causal": is_causal,
            "caches": caches,
            "memory": memory,
            "memory_mask": memory_mask,
        }
        if self._native is not None and not needs_weights:
            found = self._native.run(states, **arguments)
            if found is not None:
                return found
        if self._packed is None or needs_weights:
            return super().forward(states, **arguments)
        # The kernel of attention converts a mask of booleans in every call.
        mask = None if mask is None else _as_bias(mask, states.dtype)
        if memory_mask is not None:
            memory_mask = _as_bias(memory_mask[:, None], states.dtype)
        is_causal = is_causal and states.shape[1] > 1
        for _ in range(self.num_rounds):
            for index, block in enumerate(self._packed):
                cache = None if caches is None else caches[index]
                states = block.attend_self(states, mask, is_causal=is_causal, cache=cache)
                if memory is not None:
                    projected = memory[index] if isinstance(memory, list) else memory
                    states = block.attend_cross(states, projected, memory_mask)
                states = block.feed(states)
        return states


def _as_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the bias (B, 1, Q, K) of scores for a mask (B, Q, K): 0, or -inf where it is False."""
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(~mask, -torch.inf)[:, None]


def _all_supported(stack: TransformerStack) -> bool:
    """Return whether all blocks are of the usual kind, without relative positions."""
    return all(type(block) is TransformerBlock and _is_supported(block) for block in stack)


def _is_supported(block: TransformerBlock) -> bool:
    attention = block.self_attention
    kind = type(attention.positions)
    is_absolute = kind.rotate is Positions.rotate and kind.bias is Positions.bias
    parts = [attention, getattr(block, "cross_attention", attention)]
    return (
        is_absolute
        and [type(part) for part in parts] in ([SelfAttention, CrossAttention], [SelfAttention] * 2)
        and all(_has_equal_heads(part) for part in parts)
        and isinstance(attention.query_map, PackedLinear)
    )


def _has_equal_heads(attention: MultiHeadAttention) -> bool:
    return attention.key_map.out_features == attention.query_map.out_features


class _PackedBlock:
    """The computation of a block.

    Args:
        block: The block, whose linear layers are packed.
    """

    def __init__(self, block: Any) -> None:
        attention = block.self_attention
        self.head_dim = attention.head_dim
        maps = (attention.query_map, attention.key_map, attention.value_map)
        self.joint = maps[0].join(maps)
        self.output = attention.output_map.product
        self.self_residual = _PackedResidual(block.self_residual)
        self.cross = getattr(block, "cross_attention", None)
        if self.cross is not None:
            self.query = self.cross.query_map.product
            self.cross_output = self.cross.output_map.product
            self.cross_residual = _PackedResidual(block.cross_residual)
        self.layer = _pack_feed_forward(block.feed_forward)
        self.feed_residual = _PackedResidual(block.feed_residual)

    def attend_self(
        self, states: Tensor, bias: Tensor | None, *, is_causal: bool, cache: KeyValueCache | None
    ) -> Tensor:
        """Return the states (B, T, D) after self-attention.

        Args:
            states: (B, T, D).
            bias: (B, 1, T, K) or broadcastable, added to the scores; None = 0.
            is_causal: Whether a position attends to itself and earlier positions only.
            cache: Key-value cache, to which the new positions are appended.
        """
        joint = self.joint(self.self_residual.enter(states))
        heads = joint.view(*states.shape[:2], 3, -1, self.head_dim)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4).unbind(0)  # (B, H, T, E)
        if cache is not None:
            keys, values = cache.append(keys, values)
        if is_causal:
            # Masks of booleans and positions are merged there.
            mask = None if bias is None else bias == 0
            context, _ = attend(queries, keys, values, mask=mask, is_causal=True)
        else:
            context = scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        return self.self_residual.leave(states, self.output.map(_merge_heads(context)))

    def attend_cross(
        self, states: Tensor, memory: Tensor | KeyValue, bias: Tensor | None
    ) -> Tensor:
        """Return the states (B, T, D) after cross-attention.

        Args:
            states: (B, T, D).
            memory: (B, S, D), or its projected keys and values.
            bias: (B, 1, 1, S), added to the scores.
        """
        assert self.cross is not None
        keys, values = self.cross.project(memory) if isinstance(memory, Tensor) else memory
        queries = self.query(self.cross_residual.enter(states))
        heads = queries.view(*states.shape[:2], -1, self.head_dim).transpose(1, 2)
        context = scaled_dot_product_attention(heads, keys, values, attn_mask=bias)
        return self.cross_residual.leave(states, self.cross_output.map(_merge_heads(context)))

    def feed(self, states: Tensor) -> Tensor:
        """Return the states (B, T, D) after the feed-forward layer."""
        return self.feed_residual.leave(states, self.layer(self.feed_residual.enter(states)))


def _merge_heads(context: Tensor) -> Tensor:
    """Merge the heads of a context: (B, H, T, E) → (B, T, D)."""
    return context.transpose(1, 2).flatten(2)


def _pack_feed_forward(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return the function of a feed-forward layer."""
    if not isinstance(layer, FeedForward) or layer.activation is not relu:
        return layer
    maps: Any = (layer.hidden_map, layer.output_map)
    hidden, output = (one.product for one in maps)
    return lambda states: output.map(hidden.map(states, "relu"))


class _PackedResidual:
    """The computation of a residual connection around a layer.

    Args:
        residual: The connection.
    """

    def __init__(self, residual: Residual) -> None:
        norm = residual.norm
        self.is_norm_first = residual.is_norm_first
        self.norm: Callable[[Tensor], Tensor] = norm
        if type(norm) is nn.LayerNorm:
            shape, weight, bias, epsilon = norm.normalized_shape, norm.weight, norm.bias, norm.eps
            self.norm = lambda states: layer_norm(states, shape, weight, bias, epsilon)

    def enter(self, states: Tensor) -> Tensor:
        """Return the inputs of the layer."""
        return self.norm(states) if self.is_norm_first else states

    def leave(self, states: Tensor, outputs: Tensor) -> Tensor:
        """Add the outputs of the layer, in any dtype, to the states."""
        total = states + outputs
        return total if self.is_norm_first else self.norm(total)
