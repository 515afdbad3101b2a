"""Where reading stops that never goes back: expected over all ways to read, or chosen at once.

Raffel et al. 2017, section 2. A reader goes on from the position where it last stopped, and stops
at each position with the probability p that it has. Whoever comes to the last position stops
there. In the paper it may pass that as well, to a context of zeros; in expectation it would then
look nowhere for ever.
"""

from torch import Tensor, nn


def expect_ahead(energies: Tensor, mask: Tensor, places: Tensor) -> Tensor:
    """Return how likely each position is the one at which reading stops.

    Eq. 9: from place k, position j is reached if none from k to j - 1 was taken. The products of
    1 - p are sums of logarithms here, each summed for itself; the paper's form in one sweep
    (appendix C.1) divides by products that vanish in a long source.

    Args:
        energies: (B, Q, S), the logits of p.
        mask: (B, 1, S), True = a real position.
        places: (B, Q, S), the alignment of the step before.

    Returns:
        (B, Q, S).
    """
    # What it takes to come to a position from the one before it.
    passed = nn.functional.logsigmoid(-energies).masked_fill(~mask, 0.0)  # (B, Q, S)
    passed = nn.functional.pad(passed[..., :-1], (1, 0))
    # Row j, column k: all that lies between place k and position j; never above zero.
    spans = passed[..., None].expand(*passed.shape, passed.shape[-1]).tril(-1).cumsum(-2)
    reached = (spans.exp().tril() * places[..., None, :]).sum(-1)  # (B, Q, S)
    return reached * energies.sigmoid().masked_fill(_last(mask), 1.0).masked_fill(~mask, 0.0)


def choose_ahead(energies: Tensor, mask: Tensor, places: Tensor) -> Tensor:
    """Choose the first position from the last choice on whose p is at least one half.

    Args:
        energies: (B, Q, S), the logits of p.
        mask: (B, 1, S), True = a real position.
        places: (B, Q, S), 1 at the last choice.

    Returns:
        (B, Q, S), 1 at the new choice.
    """
    is_ahead = places.cumsum(-1) > 0
    is_wanted = is_ahead & mask & ((energies >= 0) | _last(mask))
    is_first = is_wanted & (is_wanted.cumsum(-1) == 1)
    return is_first.to(energies.dtype)


def _last(mask: Tensor) -> Tensor:
    """Tell the last real position of each row from all others."""
    return mask & (mask.flip(-1).cumsum(-1).flip(-1) == 1)
