"""Losses as sums over a batch, so that averages over several batches are exact."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.autograd.function import once_differentiable

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
    total, nll = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
        logits.flatten(0, 1), labels.flatten(), mask.flatten(), smoothing
    )
    return Loss(total=total, nll=nll, count=mask.sum())


class _CrossEntropy(torch.autograd.Function):
    """Cross entropy in chunks of rows, with the gradient by its formula in the forward pass.

    Autograd would keep log-probabilities of all tokens in 32 bits, and fill several tensors of that
    size in the backward pass. Here only a chunk is held in 32 bits, and its softmax is computed
    once.
    """

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any, logits: Tensor, labels: Tensor, mask: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """Return the smoothed and the plain loss, summed over unmasked rows.

        Args:
            ctx: Context of the backward pass.
            logits: (N, V).
            labels: (N,).
            mask: (N,), True = counted.
            smoothing: Probability mass spread over the vocabulary.
        """
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        parts = [
            _rows.losses(
                logits[rows],
                labels[rows],
                mask=mask[rows],
                smoothing=smoothing,
                gradient=None if gradient is None else gradient[rows],
            )
            for rows in _chunks(logits)
        ]  # rows of smoothed loss and plain loss
        total, nll = (torch.cat(part).sum() for part in zip(*parts, strict=True))
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient of the logits, which is overwritten."""
        (gradient,) = ctx.saved_tensors
        # Usually the factor is 1. On a GPU, comparing it would wait for the device.
        if gradient.device.type == "cpu" and grad == 1:
            return gradient, None, None, None
        return gradient * grad.to(gradient.dtype), None, None, None


CHUNK_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 26}
"""Logits per chunk: on a CPU those that fit into its cache, on a GPU those of 256 MB in 32 bits."""


def compile_losses(is_compiled: bool) -> None:
    """Compile the function of chunks of logits by `torch.compile`, or use the original one."""
    _rows.losses = torch.compile(_row_losses) if is_compiled else _row_losses


def _chunks(logits: Tensor) -> list[slice]:
    """Return slices of the rows of logits (N, V)."""
    num_elements = CHUNK_ELEMENTS.get(logits.device.type, 1 << 26)
    size = max(1, num_elements // logits.shape[1])
    return [slice(start, start + size) for start in range(0, max(len(logits), 1), size)]


def _row_losses(
    logits: Tensor,
    labels: Tensor,
    *,
    mask: Tensor,
    smoothing: float,
    gradient: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return the smoothed and the plain loss of each row, 0 where masked, (N,) each.

    Args:
        logits: (N, V).
        labels: (N,).
        mask: (N,), True = counted.
        smoothing: Probability mass spread over the vocabulary.
        gradient: (N, V), overwritten by the softmax minus the smoothed true distribution.
    """
    log_probs = logits.log_softmax(-1, dtype=torch.float32)
    nll = total = -log_probs.gather(-1, labels[:, None])[:, 0]
    if smoothing:
        total = (1 - smoothing) * nll - smoothing * log_probs.mean(-1)
    if gradient is not None:
        gradients = log_probs.exp_()
        if smoothing:
            gradients -= smoothing / logits.shape[1]
        true = torch.full_like(nll, smoothing - 1)[:, None]
        gradient.copy_(gradients.scatter_add_(-1, labels[:, None], true).mul_(mask[:, None]))
    return total.where(mask, 0.0), nll.where(mask, 0.0)


@dataclass
class _Rows:
    """Function of chunks of logits in use."""

    losses: Callable[..., tuple[Tensor, Tensor]] = _row_losses


_rows = _Rows()


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
