"""Forced decoding: the log-probability of a target that is given."""

import torch
from torch import Tensor

from regard.models.seq2seq import EncoderDecoder
from regard.search.scorer import Scorer


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


def walk_along(scorer: Scorer, targets: Tensor, *, beams: int = 1) -> Tensor:
    """Return the log-probability of each token of a given target, step by step.

    For scorers that are no model, such as CTC.

    Args:
        scorer: What gives log-probabilities.
        targets: (B·W, T) token ids from the start token to the end token, padded.
        beams: Targets of a sentence.

    Returns:
        (B·W, T - 1), as `force`.
    """
    state, said = scorer.start(beams), []
    for before, after in zip(targets.T[:-1], targets.T[1:], strict=True):
        log_probs, state = scorer.step(before, state)
        said.append(log_probs.gather(1, after[:, None]))
    return torch.cat(said, dim=1)  # (B·W, T - 1)
