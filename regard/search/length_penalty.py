"""Length penalties: the scale by which the log-probability of a hypothesis is divided."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor

from regard.search.settings import SearchConfig

Length = TypeVar("Length", float, Tensor)

LENGTH_PENALTIES: dict[str, Callable[..., Any]] = {
    "length": lambda length: length,
    "gnmt": lambda length: (5 + length) / 6,
}
"""Base of the power by `search.length_penalty_kind`: the length in tokens, or that of Wu et al.
2016, eq. 14. Both grow with the length."""


def length_scale(length: Length, config: SearchConfig) -> Length:
    """Return the scale of the log-probability of targets with a length in tokens.

    Args:
        length: One length, or those of several targets.
        config: Exponent and kind of the length penalty.
    """
    base: Length = LENGTH_PENALTIES[config.length_penalty_kind](length)
    scale: Length = base**config.length_penalty
    return scale
