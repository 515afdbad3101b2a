"""Faithfulness of attributions: whether the inputs that they name are those the model needs."""

import math
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from regard.core.keyed_random import uniform
from regard.interpret.forced import ForcedPass

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of the source that are left out, or kept alone; the results are averaged over them."""


@dataclass(frozen=True)
class Faithfulness:
    """Comprehensiveness and sufficiency of an attribution (DeYoung et al. 2020, "ERASER").

    Both are differences of probabilities, and means over the tokens of the output and `SHARES`.
    """

    comprehensiveness: float
    """Loss of probability without the highest-scored parts of the source. Higher is better."""
    sufficiency: float
    """Loss of probability with these parts alone. Lower is better."""

    def to_dict(self) -> dict[str, float]:
        """Return plain values for JSON."""
        return asdict(self)


def measure_faithfulness(forced: ForcedPass, scores: ArrayLike) -> Faithfulness:
    """Return the faithfulness of scores of the source.

    Parts of the source are left out as by erasure: tokens are deleted. Start and end tokens and the
    earlier tokens of the output are always kept.

    Args:
        forced: The source with its output.
        scores: (T, S), higher = more important for an output.
    """
    free = forced.source.is_free.cpu().nonzero()[:, 0]
    if not len(free):
        return Faithfulness(0.0, 0.0)
    ranked = torch.tensor(np.array(scores))[:, free].argsort(dim=1, descending=True, stable=True)
    ordered = free[ranked]  # (T, S)
    sizes = [max(1, round(share * len(free))) for share in SHARES]
    without, alone = _kept(forced, ordered, sizes)
    before = forced.log_probs().exp()
    losses = [_losses(forced, kept, before) for kept in (without, alone)]
    return Faithfulness(*losses)


def random_faithfulness(forced: ForcedPass, *, seed: int = 0) -> Faithfulness:
    """Return the faithfulness of random scores, which a useful attribution exceeds.

    Args:
        forced: The source with its output.
        seed: Seed of the scores.
    """
    rows = np.arange(forced.num_outputs)
    return measure_faithfulness(forced, uniform((seed,), rows, len(forced.source.names)))


def _kept(forced: ForcedPass, ordered: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor]:
    """Return what is kept without the best parts, and with them alone: (K, T, S) bool each."""
    num_outputs, num_source = forced.num_outputs, len(forced.source.names)
    best = torch.zeros(len(sizes), num_outputs, num_source, dtype=torch.bool)
    for index, size in enumerate(sizes):
        best[index].scatter_(1, ordered[:, :size], True)
    return ~best, best | ~forced.source.is_free.cpu()


def _losses(forced: ForcedPass, kept: Tensor, before: Tensor) -> float:
    """Return the mean loss of probability of each output for what is kept for it, (K, T, S)."""
    rows = kept.flatten(0, 1).to(before.device)
    prefix = rows.new_ones(len(rows), forced.num_outputs)
    after = forced.log_probs_without_each(torch.cat([rows, prefix], dim=1)).exp()
    after = after.view(*kept.shape[:2], -1).diagonal(dim1=1, dim2=2)  # (K, T)
    return math.fsum((before - after).flatten().tolist()) / after.numel()
