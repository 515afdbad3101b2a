"""What an autoencoder offers: the codes of sources, and what codes stand for."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Autoencoder(Protocol):
    """A task whose sources have codes that can be turned back."""

    def encode(self, sources: Sequence[Any]) -> Tensor:
        """Return the codes of sources, (B, D), in 32 bits and on the host."""

    def decode(self, codes: Tensor) -> list[str] | Tensor:
        """Return what codes (B, D) stand for: texts, or images (B, C, Y, X) in 8 bits."""
