"""Forced decoding of a text that is too long for one pass: in sliding windows, or carried on."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.models.language_model import LanguageModel, next_log_probs

NUM_ROWS = 32
"""Pieces that a text is cut into where its state is carried on and time is short."""


def foretell(
    model: LanguageModel, tokens: Tensor, *, window: int, batch: int, is_quick: bool = False
) -> Tensor:
    """Read a long text as its model reads best.

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
    """Say in a signature what `foretell` foretells each token from."""
    if model.is_recurrent:
        return "context:all|state:carried"
    return f"context:{window}|stride:{_half(window)}"


def _half(window: int) -> int:
    return max(1, window // 2)


def slide(model: LanguageModel, tokens: Tensor, *, window: int, stride: int, batch: int) -> Tensor:
    """Read a text in windows that overlap, and take from each what it alone foretells best.

    Every token is foretold from at least `window - stride` tokens before it, or from all there
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
    # What stands after the end is foretold by nobody and seen by nobody: any token will do.
    filled = pad(tokens, (0, (num - 1) * stride + window + 1 - len(tokens)))
    rows = filled.unfold(0, window + 1, stride)  # (B, L)
    said = []
    for first in range(0, num, batch):
        part = rows[first : first + batch]
        log_probs = next_log_probs(model(part[:, :-1]).logits, part[:, 1:])
        if first == 0:
            said.append(log_probs[0, : window - stride])
        said.append(log_probs[:, window - stride :].flatten())
    return torch.cat(said)[:num_labels]


def carry(model: LanguageModel, tokens: Tensor, *, chunk: int, rows: int = 1) -> Tensor:
    """Read a text from end to end, each token foretold from all that came before it.

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
        said.append(next_log_probs(logits, labels[:, first : first + chunk]))
    return torch.cat(said, dim=1).flatten()[:num_labels]
