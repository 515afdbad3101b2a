"""What a drawn image costs: the negative logarithm of a normal density around it."""

import math

from torch import Tensor

from regard.core.shapes import check
from regard.training.losses import Loss


def gaussian(drawn: Tensor, right: Tensor, *, deviation: float) -> Loss:
    """Return the negative logarithm of the density of images, summed over their values.

    With the deviation 1 it is half the squared error, but for a constant. Sums over the values of
    an image, and not their mean, belong beside a divergence of its code: together they are the
    evidence lower bound (Kingma & Welling 2014, eq. 3).

    Args:
        drawn: (B, C, Y, X), the means.
        right: (B, C, Y, X), the images.
        deviation: Standard deviation of each value.
    """
    check("drawn", drawn, "B C Y X")
    check("right", right, "B C Y X")
    total = log_constant(deviation) * right.numel()
    nll = (drawn.float() - right).square().sum() / (2 * deviation**2) + total
    count = drawn.new_tensor(right.numel(), dtype=nll.dtype)
    return Loss(total=nll, nll=nll.detach(), count=count)


def log_constant(deviation: float) -> float:
    """Return what each value costs that is right: log(deviation · √2π)."""
    return math.log(deviation) + math.log(2 * math.pi) / 2
