"""Typed modules: a call has the types of `forward`, and a list has the type of its members.

`Embedding` and `Conv2d` are those of torch with typed calls; `Linear` has a faster product on a
CPU.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, ParamSpec, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn

from regard.core.native.linear import Product, linear

M = TypeVar("M", bound=nn.Module)
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _HasForward(Protocol[P, R]):
    @property
    def forward(self) -> Callable[P, R]: ...


class Module(nn.Module):
    """Torch module whose call has the type of its `forward`."""

    if TYPE_CHECKING:

        @property
        def __call__(self: _HasForward[P, R]) -> Callable[P, R]:  # type: ignore[override]
            """Run the hooks and `forward`."""


class ModuleList(nn.ModuleList, Generic[M]):
    """List of modules of one type."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[M]: ...


class Linear(Module, nn.Linear):
    """Linear layer."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., D) to (..., D)."""
        return linear(input, self.weight, self.bias)


class PackedLinear(Module):
    """Linear layer for inference, whose weight is converted once.

    Args:
        layer: The layer; its parameters are shared, not copied.
        build: A value of `PRODUCTS`.
    """

    def __init__(
        self, layer: nn.Linear, build: "Callable[[Tensor, Tensor | None], Product]"
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self._build = build
        self.product = build(layer.weight, layer.bias)
        self._joint: dict[int, Product] = {}

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., D) to (..., E)."""
        return self.product(input)

    def join(self, layers: "Sequence[PackedLinear]") -> Product:
        """Return the product of this layer and the others of `layers`, to (..., sum of E)."""
        product = self._joint.get(len(layers))
        if product is None:
            weight = torch.cat([layer.weight for layer in layers])
            bias = None if self.bias is None else torch.cat([layer.bias for layer in layers])
            product = self._joint[len(layers)] = self._build(weight, bias)
        return product


if TYPE_CHECKING:

    class Embedding(Module, nn.Embedding):
        """Embedding table."""

    class Conv2d(Module, nn.Conv2d):
        """2D convolution."""

else:
    Embedding, Conv2d = nn.Embedding, nn.Conv2d

MIN_JOINT_ROWS = 512
"""With fewer rows, the concatenation of the weights takes longer than it saves."""


def apply_jointly(
    layers: "Sequence[Linear] | Sequence[PackedLinear]", inputs: Tensor
) -> tuple[Tensor, ...]:
    """Apply linear layers to the same inputs (..., D), by one matrix product if rows are many.

    The layers keep their own parameters, so that checkpoints do not depend on it.
    """
    first = layers[0]
    if isinstance(first, PackedLinear):
        outputs = first.join(cast("Sequence[PackedLinear]", layers))(inputs)
    elif inputs.shape[:-1].numel() < MIN_JOINT_ROWS:
        return tuple(layer(inputs) for layer in layers)
    else:
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if first.bias is None else torch.cat([layer.bias for layer in layers])
        outputs = linear(inputs, weight, bias)
    return torch.split(outputs, [layer.out_features for layer in layers], dim=-1)
