"""What a predicted box costs: how far its edges are off, and how little it shares."""

import torch
from torch import Tensor


def box_distance(predicted: Tensor, right: Tensor) -> Tensor:
    """Return how far middle and size are off, summed: (B, 4) and (B, 4) → (B,).

    Carion et al. 2020, eq. 9. Boxes have left, upper, right and lower edges.
    """
    return (_to_middle(predicted) - _to_middle(right)).abs().sum(-1)


def generalised_iou(one: Tensor, other: Tensor) -> Tensor:
    """Return what two boxes share, less what is empty in the box around both: from -1 to 1.

    Rezatofighi et al. 2019, algorithm 1. Unlike the plain share it tells boxes apart that do not
    touch, so that there is something to learn from.

    Args:
        one: (..., 4), left, upper, right and lower edges.
        other: (..., 4), likewise.
    """
    low, high = torch.maximum(one, other), torch.minimum(one, other)
    shared = _area(torch.cat([low[..., :2], high[..., 2:]], dim=-1))
    together = _area(one) + _area(other) - shared
    around = _area(torch.cat([high[..., :2], low[..., 2:]], dim=-1))
    tiny = torch.finfo(one.dtype).eps
    empty = (around - together) / around.clamp(min=tiny)
    return shared / together.clamp(min=tiny) - empty


def _to_middle(boxes: Tensor) -> Tensor:
    low, high = boxes.chunk(2, dim=-1)
    return torch.cat([(low + high) / 2, high - low], dim=-1)


def _area(boxes: Tensor) -> Tensor:
    low, high = boxes.chunk(2, dim=-1)
    return (high - low).clamp(min=0).prod(-1)
