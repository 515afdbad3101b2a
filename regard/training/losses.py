"""What a batch costs, as sums, so that averages over several batches stay exact."""

from dataclasses import dataclass

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regard.core.shapes import check


@dataclass(frozen=True)
class Loss:
    """The cost of one batch. Everything is a sum and stays on its device.

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
