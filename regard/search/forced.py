"""Forced decoding: the log-probability of a target or a text that is given."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.models.language_model import LanguageModel, token_log_probs
from regard.models.seq2seq import EncoderDecoder
from regard.search.scorer import Scorer

NUM_ROWS = 32
"""Pieces that a text is cut into where its state is carried on and time is short."""


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
    state, said = scorer.start(beams, targets.shape[1] - 1), []
    for before, after in zip(targets.T[:-1], targets.T[1:], strict=True):
        log_probs, state = scorer.step(before, state)
        said.append(log_probs.gather(1, after[:, None]))
    return torch.cat(said, dim=1)  # (B·W, T - 1)


def score_text(
    model: LanguageModel, tokens: Tensor, *, window: int, batch: int, is_quick: bool = False
) -> Tensor:
    """Return the log-probability of each token of a long text, read as its model reads best.

    A recurrent model carries its state from end to end; another one slides a window by half its
    length. In a hurry, the text is cut into pieces without anything before them.

    Args:
        model: The model, in evaluation mode.
        tokens: (L,) the text.
        window: Tokens that are read at once.
        batch: Windows that are read side by side.
        is_quick: Whether time is short, as while a model is trained.

    Returns:
        The log-probability of every token but the first, (L - 1,).
    """
    if model.is_recurrent:
        rows = min(NUM_ROWS, len(tokens) - 1) if is_quick else 1
        return carry(model, tokens, chunk=window, rows=rows)
    stride = window if is_quick else _half(window)
    return slide(model, tokens, window=window, stride=stride, batch=batch)


def describe_context(model: LanguageModel, *, window: int) -> str:
    """Describe in a signature what `score_text` predicts each token from."""
    if model.is_recurrent:
        return "context:all|state:carried"
    return f"context:{window}|stride:{_half(window)}"


def _half(window: int) -> int:
    return max(1, window // 2)


def slide(model: LanguageModel, tokens: Tensor, *, window: int, stride: int, batch: int) -> Tensor:
    """Read a text in windows that overlap, and take from each what it alone predicts best.

    Every token is predicted from at least `window - stride` tokens before it, or from all there
    are. With a stride as long as the window this is the text cut into pieces.

    Args:
        model: The model, in evaluation mode.
        tokens: (L,) the text.
        window: Tokens that are read at once.
        stride: How far one window begins after the other.
        batch: Windows that are read side by side.

    Returns:
        The log-probability of every token but the first, (L - 1,).
    """
    num_labels = len(tokens) - 1
    window = min(window, num_labels)
    stride = min(stride, window)
    num = 1 + math.ceil((num_labels - window) / stride)
    # What stands after the end is predicted by nobody and seen by nobody: any token will do.
    filled = pad(tokens, (0, (num - 1) * stride + window + 1 - len(tokens)))
    rows = filled.unfold(0, window + 1, stride)  # (B, L)
    said = []
    for first in range(0, num, batch):
        part = rows[first : first + batch]
        log_probs = token_log_probs(model(part[:, :-1]).logits, part[:, 1:])
        if first == 0:
            said.append(log_probs[0, : window - stride])
        said.append(log_probs[:, window - stride :].flatten())
    return torch.cat(said)[:num_labels]


def carry(model: LanguageModel, tokens: Tensor, *, chunk: int, rows: int = 1) -> Tensor:
    """Read a text from end to end, each token predicted from all that came before it.

    Args:
        model: The model, in evaluation mode; what it remembers must not grow with the text.
        tokens: (L,) the text.
        chunk: Tokens that are read at once.
        rows: Pieces that the text is cut into, read side by side: quicker, but each piece begins
            with nothing before it.

    Returns:
        The log-probability of every token but the first, (L - 1,).
    """
    num_labels = len(tokens) - 1
    length = math.ceil(num_labels / rows)
    filled = pad(tokens, (0, rows * length - num_labels))
    inputs, labels = filled[:-1].view(rows, length), filled[1:].view(rows, length)
    state, said = model.start(rows), []
    for first in range(0, length, chunk):
        logits, state = model.step(inputs[:, first : first + chunk], state)
        said.append(token_log_probs(logits, labels[:, first : first + chunk]))
    return torch.cat(said, dim=1).flatten()[:num_labels]
