"""Losses as sums over a batch, so that averages over several batches stay exact."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regard.core.shapes import check


@dataclass(frozen=True)
class Loss:
    """The loss of one batch. Everything is a sum and stays on its device.

    A caller with extra terms adds them to `total`, scaled by `count`:
    `dataclasses.replace(loss, total=loss.total + weight * term * loss.count)`.
    """

    total: Tensor
    """A single number: the sum over tokens, from which gradients flow."""
    nll: Tensor
    """A single number without gradient: the negative log-likelihood, without smoothing."""
    count: Tensor
    """A single number: how many tokens the sums are over."""


def cross_entropy(logits: Tensor, labels: Tensor, mask: Tensor, *, smoothing: float = 0.0) -> Loss:
    """Return the cross entropy between the true tokens and the predicted distribution.

    Label smoothing as in Szegedy et al. 2016, section 7: the true token keeps `1 - smoothing`,
    and the rest is shared evenly by the whole vocabulary.

    Args:
        logits: (B, T, V), of any floating type; computed in 32 bits.
        labels: (B, T), the true tokens.
        mask: (B, T), True = counts.
        smoothing: Share of the probability given to the whole vocabulary.
    """
    check("logits", logits, "B T V")
    check("labels", labels, "B T")
    check("mask", mask, "B T")
    log_probs = F.log_softmax(logits.float(), dim=-1)
    # The negative log-likelihood is a by-product here; F.cross_entropy would need a second pass.
    nll = F.nll_loss(
        log_probs.flatten(0, 1),
        labels.masked_fill(~mask, -100).flatten(),
        ignore_index=-100,
        reduction="sum",
    )
    total = nll
    if smoothing:
        uniform = -log_probs.mean(dim=-1).where(mask, 0.0).sum()
        total = (1 - smoothing) * nll + smoothing * uniform
    return Loss(total=total, nll=nll.detach(), count=mask.sum())


def sum_term(term: Tensor, mask: Tensor) -> Tensor:
    """Return a further term of the loss as a sum over tokens, as `Loss.total` is one.

    Args:
        term: A mean over tokens; (B, T), one number a token; or (B,), one number a source.
        mask: (B, T), True = counts.
    """
    if term.dim() == 0:
        return term * mask.sum()
    return term.sum() if term.dim() == 1 else term.where(mask, 0.0).sum()


def log_probs_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the log-probability of each true token (B, T) under logits (B, T, V): (B, T)."""
    log_probs = F.log_softmax(logits.float(), dim=-1)
    return log_probs.gather(-1, labels[..., None])[..., 0]  # (B, T)


def gaussian(means: Tensor, images: Tensor, *, deviation: float) -> Loss:
    """Return the negative log-density of images under normal distributions, summed over values.

    With a standard deviation of 1 it is half the squared error plus a constant. The sum over the
    values of an image, not their mean, is what the evidence lower bound adds to the divergence of
    a latent (Kingma & Welling 2014, eq. 3).

    Args:
        means: (B, C, Y, X), the predicted images.
        images: (B, C, Y, X), the targets.
        deviation: Standard deviation of each value.
    """
    check("means", means, "B C Y X")
    check("images", images, "B C Y X")
    total = log_constant(deviation) * images.numel()
    nll = (means.float() - images).square().sum() / (2 * deviation**2) + total
    count = means.new_tensor(images.numel(), dtype=nll.dtype)
    return Loss(total=nll, nll=nll.detach(), count=count)


def log_constant(deviation: float) -> float:
    """Return the negative log-density of a normal distribution at its mean, log(std · √2π)."""
    return math.log(deviation) + math.log(2 * math.pi) / 2


def box_distance(predicted: Tensor, target: Tensor) -> Tensor:
    """Return the L1 distance of centres and sizes: (B, 4) and (B, 4) → (B,).

    Carion et al. 2020, eq. 9. Boxes have left, upper, right and lower edges.
    """
    return (_to_center(predicted) - _to_center(target)).abs().sum(-1)


def generalised_iou(one: Tensor, other: Tensor) -> Tensor:
    """Return the generalised intersection over union of two boxes, from -1 to 1.

    Rezatofighi et al. 2019, algorithm 1. Unlike the plain one, it has a gradient for boxes that do
    not overlap.

    Args:
        one: (..., 4), left, upper, right and lower edges.
        other: (..., 4), likewise.
    """
    low, high = torch.maximum(one, other), torch.minimum(one, other)
    overlap = _area(torch.cat([low[..., :2], high[..., 2:]], dim=-1))
    union = _area(one) + _area(other) - overlap
    enclosing = _area(torch.cat([high[..., :2], low[..., 2:]], dim=-1))
    tiny = torch.finfo(one.dtype).eps
    empty = (enclosing - union) / enclosing.clamp(min=tiny)
    return overlap / union.clamp(min=tiny) - empty


def _to_center(boxes: Tensor) -> Tensor:
    low, high = boxes.chunk(2, dim=-1)
    return torch.cat([(low + high) / 2, high - low], dim=-1)


def _area(boxes: Tensor) -> Tensor:
    low, high = boxes.chunk(2, dim=-1)
    return (high - low).clamp(min=0).prod(-1)
