"""Losses as sums over a batch, so that averages over several batches are exact."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regard.core.shapes import check


@dataclass(frozen=True)
class Loss:
    """Loss of one batch, as sums on the device of the batch.

    To add a further term, scale it by `count`:
    `dataclasses.replace(loss, total=loss.total + weight * term * loss.count)`.
    """

    total: Tensor
    """Scalar: sum over tokens, with gradient."""
    nll: Tensor
    """Scalar without gradient: negative log-likelihood, without label smoothing."""
    count: Tensor
    """Scalar: number of tokens in the sums."""


def cross_entropy(logits: Tensor, labels: Tensor, mask: Tensor, *, smoothing: float = 0.0) -> Loss:
    """Compute the cross entropy of the true tokens under the predicted distribution.

    Label smoothing as in Szegedy et al. 2016, section 7: the true token has probability
    `1 - smoothing`, and `smoothing` is spread evenly over the vocabulary.

    Args:
        logits: (B, T, V), of any floating-point type; computed in 32 bits.
        labels: (B, T), the true tokens.
        mask: (B, T), True = counted.
        smoothing: Label smoothing: probability mass spread over the vocabulary.
    """
    check("logits", logits, "B T V")
    check("labels", labels, "B T")
    check("mask", mask, "B T")
    log_probs = F.log_softmax(logits.float(), dim=-1)
    # One pass gives both the loss and the unsmoothed NLL; F.cross_entropy would need a second.
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
    """Return a further term of the loss as a sum over tokens, like `Loss.total`.

    Args:
        term: Scalar mean over tokens; (B, T), one value per token; or (B,), one per source.
        mask: (B, T), True = counted.
    """
    if term.dim() == 0:
        return term * mask.sum()
    return term.sum() if term.dim() == 1 else term.where(mask, 0.0).sum()


def log_probs_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the log-probability of each true token (B, T) under logits (B, T, V): (B, T)."""
    log_probs = F.log_softmax(logits.float(), dim=-1)
    return log_probs.gather(-1, labels[..., None])[..., 0]  # (B, T)


def gaussian_nll(means: Tensor, images: Tensor, *, std: float) -> Loss:
    """Compute the negative log-likelihood of images under Gaussians, summed over pixels.

    With a standard deviation of 1 this is half the squared error plus a constant. The evidence
    lower bound adds the sum over the pixels of an image, not the mean, to the KL divergence of
    the latent (Kingma & Welling 2014, eq. 3).

    Args:
        means: (B, C, Y, X), the predicted images.
        images: (B, C, Y, X), the targets.
        std: Standard deviation of each pixel value.
    """
    check("means", means, "B C Y X")
    check("images", images, "B C Y X")
    constant = gaussian_nll_constant(std) * images.numel()
    nll = (means.float() - images).square().sum() / (2 * std**2) + constant
    count = means.new_tensor(images.numel(), dtype=nll.dtype)
    return Loss(total=nll, nll=nll.detach(), count=count)


def gaussian_nll_constant(std: float) -> float:
    """Return the negative log-density of a Gaussian at its mean, log(std · √2π)."""
    return math.log(std) + math.log(2 * math.pi) / 2


def box_distance(predicted: Tensor, target: Tensor) -> Tensor:
    """Return the L1 distance between centres and sizes of boxes: (B, 4) and (B, 4) → (B,).

    Carion et al. 2020, eq. 9. Boxes are (left, upper, right, lower).
    """
    return (_to_center(predicted) - _to_center(target)).abs().sum(-1)


def generalized_iou(one: Tensor, other: Tensor) -> Tensor:
    """Return the generalised intersection over union of two boxes, from -1 to 1.

    Rezatofighi et al. 2019, algorithm 1. Unlike the plain IoU, it has a gradient for boxes that
    do not overlap.

    Args:
        one: (..., 4), boxes as (left, upper, right, lower).
        other: (..., 4), boxes in the same format.
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
