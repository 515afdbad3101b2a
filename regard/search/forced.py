"""Forced decoding: log-probabilities of given targets and texts."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.core.progress import track
from regard.models.language_model import LanguageModel, token_log_probs
from regard.models.seq2seq import EncoderDecoder
from regard.search.scorer import Scorer

NUM_ROWS = 32
"""Number of parallel parts of a text for fast scoring with a recurrent model."""


def target_log_probs(
    model: EncoderDecoder, source: Tensor, source_mask: Tensor, *, targets: Tensor
) -> Tensor:
    """Return the log-probability of each token of given targets.

    Args:
        model: The model, in eval mode.
        source: (B, S) token ids.
        source_mask: (B, S), True = a real position.
        targets: (B, T) token ids from the start token to the end token, padded.

    Returns:
        (B, T - 1): one value per token after the start token, padding included.
    """
    logits = model(source, source_mask, targets[:, :-1]).logits  # (B, T - 1, V)
    log_probs = logits.float().log_softmax(-1)
    return torch.gather(log_probs, -1, targets[:, 1:, None]).squeeze(-1)  # (B, T - 1)


def stepwise_log_probs(scorer: Scorer, targets: Tensor, *, beams: int = 1) -> Tensor:
    """Return the log-probability of each token of given targets, computed step by step.

    For scorers that are not models, such as CTC.

    Args:
        scorer: Scorer of next tokens.
        targets: (B·W, T) token ids from the start token to the end token, padded.
        beams: Number of targets per sentence.

    Returns:
        (B·W, T - 1), as `target_log_probs`.
    """
    state, steps = scorer.start(beams, targets.shape[1] - 1), []
    for tokens, labels in zip(targets.T[:-1], targets.T[1:], strict=True):
        log_probs, state = scorer.step(tokens, state)
        steps.append(log_probs.gather(1, labels[:, None]))
    return torch.cat(steps, dim=1)  # (B·W, T - 1)


def score_text(
    model: LanguageModel, tokens: Tensor, *, window: int, batch: int, is_quick: bool = False
) -> Tensor:
    """Return the log-probability of each token of a long text.

    A recurrent model carries its state through the text. Other models use a sliding window with a
    stride of half its length. If `is_quick`, the text is split into parts without context.

    Args:
        model: The model, in eval mode.
        tokens: (L,) token ids of the text.
        window: Number of tokens per window.
        batch: Number of windows per batch.
        is_quick: Whether to split the text for speed, as in validation during training.

    Returns:
        The log-probability of each token after the first, (L - 1,).
    """
    if model.is_recurrent:
        rows = min(NUM_ROWS, len(tokens) - 1) if is_quick else 1
        return score_carrying_state(model, tokens, chunk=window, rows=rows)
    stride = window if is_quick else _half(window)
    return score_windows(model, tokens, window=window, stride=stride, batch=batch)


def describe_context(model: LanguageModel, *, window: int) -> str:
    """Return a signature of the context that `score_text` uses."""
    if model.is_recurrent:
        return "context:all|state:carried"
    return f"context:{window}|stride:{_half(window)}"


def _half(window: int) -> int:
    return max(1, window // 2)


def score_windows(
    model: LanguageModel, tokens: Tensor, *, window: int, stride: int, batch: int
) -> Tensor:
    """Score a text with a sliding window.

    Each token is predicted from at least `window - stride` preceding tokens, or from all of them.
    With a stride equal to the window, the text is split into parts without context.

    Args:
        model: The model, in eval mode.
        tokens: (L,) token ids of the text.
        window: Number of tokens per window.
        stride: Distance between the starts of consecutive windows.
        batch: Number of windows per batch.

    Returns:
        The log-probability of each token after the first, (L - 1,).
    """
    num_labels = len(tokens) - 1
    window = min(window, num_labels)
    stride = min(stride, window)
    num_windows = 1 + math.ceil((num_labels - window) / stride)
    # Padding after the end is arbitrary: its predictions are dropped.
    padded = pad(tokens, (0, (num_windows - 1) * stride + window + 1 - len(tokens)))
    rows = padded.unfold(0, window + 1, stride)  # (B, L)
    scores = []
    for first in track(range(0, num_windows, batch), "Scoring", total=-(-num_windows // batch)):
        part = rows[first : first + batch]
        log_probs = token_log_probs(model(part[:, :-1]).logits, part[:, 1:])
        if first == 0:
            scores.append(log_probs[0, : window - stride])
        scores.append(log_probs[:, window - stride :].flatten())
    return torch.cat(scores)[:num_labels]


def score_carrying_state(
    model: LanguageModel, tokens: Tensor, *, chunk: int, rows: int = 1
) -> Tensor:
    """Score a text with a recurrent state, each token predicted from all preceding tokens.

    Args:
        model: The model, in eval mode, with a state of constant size.
        tokens: (L,) token ids of the text.
        chunk: Number of tokens per step.
        rows: Number of parts of the text, which are processed in parallel: faster, but each part
            starts without context.

    Returns:
        The log-probability of each token after the first, (L - 1,).
    """
    num_labels = len(tokens) - 1
    length = math.ceil(num_labels / rows)
    padded = pad(tokens, (0, rows * length - num_labels))
    inputs, labels = padded[:-1].view(rows, length), padded[1:].view(rows, length)
    state, scores = model.start(rows), []
    for first in track(range(0, length, chunk), "Scoring", total=-(-length // chunk)):
        logits, state = model.step(inputs[:, first : first + chunk], state)
        scores.append(token_log_probs(logits, labels[:, first : first + chunk]))
    return torch.cat(scores, dim=1).flatten()[:num_labels]
