"""Attention made visible: `with record(model) as maps:` takes the weights of whatever runs inside.

Nothing is stored on a module and nothing is computed when nobody records: the recorder hangs a
hook on each attention for as long as the block lasts.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention


class Maps:
    """The weights of every attention of a model, in the order of its layers."""

    def __init__(self, num_layers: int) -> None:
        self._pieces: list[list[Tensor]] = [[] for _ in range(num_layers)]

    def add(self, layer: int, weights: Tensor | None) -> None:
        """Keep the weights of one call, (B, Q, S) or (B, H, Q, S), if it returned any."""
        if weights is None:
            return
        with_heads = weights if weights.dim() == 4 else weights[:, None]  # (B, H, Q, S)
        self._pieces[layer].append(with_heads.detach())

    @property
    def num_layers(self) -> int:
        """Number of attentions in the model."""
        return len(self._pieces)

    def stack(self) -> Tensor:
        """Return what one teacher-forced pass left, (B, N, H, T, S).

        A recurrent decoder attends once a step; its steps are joined along the target. Where layers
        differ in their number of heads, as between models of an ensemble, each head is repeated
        until all have as many: the mean over a layer's heads stays what it is.
        """
        layers = [torch.cat(pieces, dim=2) for pieces in self._pieces if pieces]
        if not layers:
            raise ValueError("Nothing was recorded: no attention ran inside the block.")
        num_heads = math.lcm(*(layer.shape[1] for layer in layers))
        even = [layer.repeat_interleave(num_heads // layer.shape[1], dim=1) for layer in layers]
        return torch.stack(even, dim=1)  # (B, N, H, T, S)

    def stack_self(self) -> Tensor:
        """Return where texts looked at themselves in one pass, (B, N, H, S, S).

        A block that layers share is one attention that was asked once a layer.
        """
        stacked = self.stack()  # (B, N, H, L·S, S)
        num_texts, num_blocks, num_heads, _, length = stacked.shape
        by_call = stacked.view(num_texts, num_blocks, num_heads, -1, length, length)
        return by_call.transpose(2, 3).flatten(1, 2)  # (B, N, H, S, S)


@contextmanager
def record(model: nn.Module, *, is_self: bool = False) -> Iterator[Maps]:
    """Collect the attention weights of everything that `model` computes inside the block.

    Args:
        model: Any model.
        is_self: Record where texts look at themselves instead of where the target looks at the
            source; give the encoder or the decoder alone, as their maps differ in shape.
    """
    attentions = [
        module
        for module in model.modules()
        if isinstance(module, Attention) and module.is_self == is_self
    ]
    maps = Maps(len(attentions))
    handles = [
        attention.register_forward_hook(
            lambda _module, _inputs, output, layer=layer: maps.add(layer, output[1])
        )
        for layer, attention in enumerate(attentions)
    ]
    # Those that somebody records already stay switched on when this block ends.
    idle = [attention for attention in attentions if not attention.needs_weights]
    for attention in idle:
        attention.needs_weights = True
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()
        for attention in idle:
            del attention.needs_weights


if __name__ == "__main__":
    recorded = Maps(num_layers=2)
    for number in range(2):
        recorded.add(number, torch.full((1, 3, 4), 0.25))
    print("sentences, layers, heads, targets, sources:", tuple(recorded.stack().shape))
