"""Forced decoding: the log-probability of a target that is given."""

import torch
from torch import Tensor

from regard.models.seq2seq import EncoderDecoder


def force(model: EncoderDecoder, source: Tensor, source_mask: Tensor, *, targets: Tensor) -> Tensor:
    """Return the log-probability of each token of a given target.

    Args:
        model: The model, in evaluation mode.
        source: (B, S) token ids.
        source_mask: (B, S), True = a real position.
        targets: (B, T) token ids from the start token to the end token, padded.

    Returns:
        (B, T - 1): one number for every token after the start token, padding included.
    """
    logits = model(source, source_mask, targets[:, :-1]).logits  # (B, T - 1, V)
    log_probs = logits.float().log_softmax(-1)
    return torch.gather(log_probs, -1, targets[:, 1:, None]).squeeze(-1)  # (B, T - 1)
