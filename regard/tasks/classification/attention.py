"""Where a classifier looks: its attention, or what stands in for it where there is none."""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.attention.attend import Attention
from regard.attention.recording import record
from regard.models.classifier import Classifier
from regard.models.heads.pooling import AlignedPooling, FirstPooling
from regard.models.interfaces import TokenEncoder

SALIENCY = "gradient x input"
"""What stands in for attention: how much each word's vector moves the label's logit."""


def look(model: Classifier, source: Tensor, mask: Tensor, *, labels: Tensor) -> tuple[Tensor, str]:
    """Tell how much each position counts for the label of each text.

    With attention pooling these are its weights. With self-attention they are the weights of what
    is pooled: of the first position, or the mean over all. Else, and where two texts are aligned,
    it is the gradient.

    Args:
        model: In evaluation mode.
        source: (B, S) token ids.
        mask: (B, S), True = a real position.
        labels: (B,), the labels asked about.

    Returns:
        Weights (B, N, H, 1, S), which sum to one over the positions, and what they are.
    """
    if isinstance(model.pooling, AlignedPooling):
        # Alignment is between two texts; what counts for the label is another question.
        return _take_gradient(model, source, mask, labels=labels), SALIENCY
    if _has_attention(model.pooling):
        return _record_pooling(model, source, mask), "attention of the pooling"
    if _has_attention(model.encoder):
        return _record_encoder(model, source, mask), "self-attention"
    return _take_gradient(model, source, mask, labels=labels), SALIENCY


def align(model: Classifier, source: Tensor, mask: Tensor) -> Tensor:
    """Return where the words of two texts look in one another, (B, N, H, S, S).

    Args:
        model: In evaluation mode; its pooling aligns.
        source: (B, S) token ids.
        mask: (B, S), True = a real position.
    """
    with torch.inference_mode(), record(model.pooling) as maps:
        model(source, mask)
    return maps.stack()  # (B, N, H, S, S)


def _has_attention(module: torch.nn.Module) -> bool:
    return any(isinstance(part, Attention) for part in module.modules())


def _record_pooling(model: Classifier, source: Tensor, mask: Tensor) -> Tensor:
    with torch.inference_mode(), record(model.pooling) as maps:
        model(source, mask)
    return maps.stack()  # (B, N, H, 1, S)


def _record_encoder(model: Classifier, source: Tensor, mask: Tensor) -> Tensor:
    with torch.inference_mode(), record(model.encoder, is_self=True) as maps:
        model(source, mask)
    weights = maps.stack_self()  # (B, N, H, S, S)
    if isinstance(model.pooling, FirstPooling):
        return weights[..., :1, :]
    rows = mask.to(weights.device)[:, None, None, :, None]  # (B, 1, 1, S, 1)
    total: Tensor = (weights * rows).sum(3, keepdim=True)  # (B, N, H, 1, S)
    return total / rows.sum(3, keepdim=True).clamp(min=1)


def _take_gradient(model: Classifier, source: Tensor, mask: Tensor, *, labels: Tensor) -> Tensor:
    """Return |gradient · vector| of each word, as shares of their sum: (B, 1, 1, 1, S)."""
    seen: list[Tensor] = []
    assert isinstance(model.encoder, TokenEncoder)
    # cuDNN has no gradient of a recurrent layer outside training.
    with (
        torch.enable_grad(),
        torch.backends.cudnn.flags(enabled=False),
        _Replaced(model.encoder.embedding, seen.append),
    ):
        logits = model(source, mask)
        asked = logits.gather(1, labels[:, None]).sum()
        (gradient,) = torch.autograd.grad(asked, seen)
    found = (gradient * seen[0]).sum(-1).abs() * mask.to(gradient.device)  # (B, S)
    shares = found / found.sum(-1, keepdim=True).clamp(min=torch.finfo(found.dtype).tiny)
    return shares.detach()[:, None, None, None]  # (B, 1, 1, 1, S)


class _Replaced:
    """Makes of what an embedding returns a leaf that a gradient can be taken of."""

    def __init__(self, embedding: torch.nn.Module, keep: Callable[[Tensor], None]) -> None:
        self._embedding = embedding
        self._keep = keep

    def __enter__(self) -> None:
        def replace(_module: torch.nn.Module, _inputs: object, output: Tensor) -> Tensor:
            leaf = output.detach().requires_grad_()
            self._keep(leaf)
            return leaf

        self._handle = self._embedding.register_forward_hook(replace)

    def __exit__(self, *error: object) -> None:
        self._handle.remove()
