"""Attention itself: scores → weights → context."""

import torch
from torch import Tensor


def weigh(scores: Tensor, mask: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """Turn scores into weights that sum to one over the keys allowed.

    Bahdanau et al. 2015, eq. 6.

    Args:
        scores: (..., Q, K), any real numbers.
        mask: (..., Q, K) or broadcastable, bool, True = may attend.
        bias: (..., Q, K) or broadcastable, added to the scores.

    Returns:
        (..., Q, K) in float32 at least. A row with no key allowed is all zeros, forward and
        backward.
    """
    if bias is not None:
        scores = scores + bias
    if scores.dtype in (torch.bfloat16, torch.float16):
        scores = scores.float()
    if mask is None:
        return scores.softmax(-1)
    # The lowest finite number instead of minus infinity: a row with nothing to attend to then
    # never makes a NaN, and the second fill turns it into zeros.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1).masked_fill(~mask, 0.0)


def mix(weights: Tensor, values: Tensor) -> Tensor:
    """Take the weighted sum of the values.

    Bahdanau et al. 2015, eq. 5.

    Args:
        weights: (..., Q, K).
        values: (..., K, D).

    Returns:
        The context, (..., Q, D).
    """
    return weights.to(values.dtype) @ values


if __name__ == "__main__":
    keys = torch.tensor([[0.5, 0.1, 0.9], [0.2, 0.4, 0.1], [-0.3, 0.2, -1.0]])
    scores = torch.tensor([[0.6, 0.3, 0.8]]) @ keys.T / 3**0.5
    weights = weigh(scores)
    print("scores ", *(f"{score:6.3f}" for score in scores[0]))
    print("weights", *(f"{weight:6.3f}" for weight in weights[0]))
    print("context", *(f"{value:6.3f}" for value in mix(weights, keys)[0]))
