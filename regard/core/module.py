"""The base class of our modules: a call has the types of `forward`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from torch import nn

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _HasForward(Protocol[P, R]):
    @property
    def forward(self) -> Callable[P, R]: ...


class Module(nn.Module):
    """A torch module whose call is type-checked like its `forward`."""

    if TYPE_CHECKING:

        @property
        def __call__(self: _HasForward[P, R]) -> Callable[P, R]:  # type: ignore[override]
            """Run the hooks and `forward`."""
