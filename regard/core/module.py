"""Typed modules: a call has the types of `forward`, and a list has the type of its members.

`Linear`, `Embedding`, `Conv2d` and `Dropout` are those of torch, with typed calls.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, ParamSpec, Protocol, TypeVar

from torch import nn

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


if TYPE_CHECKING:

    class Linear(Module, nn.Linear):
        """Linear layer."""

    class Embedding(Module, nn.Embedding):
        """Embedding table."""

    class Conv2d(Module, nn.Conv2d):
        """2D convolution."""

    class Dropout(Module, nn.Dropout):
        """Dropout."""

else:
    Linear, Embedding, Conv2d, Dropout = nn.Linear, nn.Embedding, nn.Conv2d, nn.Dropout
