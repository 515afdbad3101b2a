"""Recording of attention weights: `with record(model) as maps:`.

Forward hooks on the attention modules collect the weights while the block runs. Without `record`
nothing is stored, and no weights are computed for it.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.core.eager import force_eager


class AttentionMaps:
    """Recorded attention weights of a model, by layer."""

    def __init__(self, num_layers: int, *, has_gradients: bool = False) -> None:
        self._has_gradients = has_gradients
        self._weights: list[list[Tensor]] = [[] for _ in range(num_layers)]

    def add(self, layer: int, weights: Tensor | None) -> None:
        """Store the weights of one call, (B, Q, S) or (B, H, Q, S). None is ignored."""
        if weights is None:
            return
        with_heads = weights if weights.dim() == 4 else weights[:, None]  # (B, H, Q, S)
        self._weights[layer].append(with_heads if self._has_gradients else with_heads.detach())

    @property
    def num_layers(self) -> int:
        """Number of attention layers in the model."""
        return len(self._weights)

    def stack(self) -> Tensor:
        """Return the weights of one teacher-forced pass, (B, N, H, T, S).

        The steps of a recurrent decoder are concatenated along the target. If the number of heads
        differs between layers, as in an ensemble, heads are repeated up to a common number, which
        does not change the mean over the heads of a layer.
        """
        layers = [torch.cat(calls, dim=2) for calls in self._weights if calls]
        if not layers:
            raise ValueError("Nothing was recorded: no attention ran inside the block.")
        num_heads = math.lcm(*(layer.shape[1] for layer in layers))
        repeated = [layer.repeat_interleave(num_heads // layer.shape[1], dim=1) for layer in layers]
        return torch.stack(repeated, dim=1)  # (B, N, H, T, S)

    def stack_self(self) -> Tensor:
        """Return the self-attention weights of one pass, (B, N, H, S, S).

        If layers share one block, its module was called once per layer.
        """
        stacked = self.stack()  # (B, N, H, L·S, S)
        num_texts, num_blocks, num_heads, _, length = stacked.shape
        by_call = stacked.view(num_texts, num_blocks, num_heads, -1, length, length)
        return by_call.transpose(2, 3).flatten(1, 2)  # (B, N, H, S, S)


@contextmanager
def record(
    model: nn.Module, *, is_self: bool = False, has_gradients: bool = False
) -> Iterator[AttentionMaps]:
    """Record the attention weights that `model` computes inside the block.

    Args:
        model: Any model.
        is_self: Whether to record self-attention instead of cross-attention. Pass the encoder or
            the decoder alone then, since their maps differ in shape.
        has_gradients: Whether the weights keep their gradients, for a loss on them.
    """
    attentions = [
        module
        for module in model.modules()
        if isinstance(module, Attention) and module.is_self == is_self
    ]
    maps = AttentionMaps(len(attentions), has_gradients=has_gradients)
    handles = [
        attention.register_forward_hook(
            lambda _module, _inputs, output, layer=layer: maps.add(layer, output[1])
        )
        for layer, attention in enumerate(attentions)
    ]
    # Modules that an outer block already records keep `needs_weights` when this block ends.
    unrecorded = [attention for attention in attentions if not attention.needs_weights]
    for attention in unrecorded:
        attention.needs_weights = True
    try:
        # Compiled code does not call the hooks.
        with force_eager():
            yield maps
    finally:
        for handle in handles:
            handle.remove()
        for attention in unrecorded:
            del attention.needs_weights


if __name__ == "__main__":
    recorded = AttentionMaps(num_layers=2)
    for index in range(2):
        recorded.add(index, torch.full((1, 3, 4), 0.25))
    print("sentences, layers, heads, targets, sources:", tuple(recorded.stack().shape))
