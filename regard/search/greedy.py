"""Greedy search, and the generation loop that sampling shares."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from regard.models.interfaces import select_sentences
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer, can_drop_sentences
from regard.search.watching import current_watch

CHECK_EVERY = 4
"""Steps between checks on a GPU whether all sentences are done, since each check synchronises."""

MIN_DONE_SHARE = 0.25
"""Share of the sentences that must be done before they leave the batch, which copies the others."""

Choose: TypeAlias = Callable[[Tensor, int, Tensor], tuple[Tensor, Tensor]]
"""Log-probabilities (N, V), step index and the hypothesis of each row (N,) → log-probabilities and
ids of the tokens, (N,)."""


def greedy(scorer: Scorer, *, start: int, end: int, max_lengths: Tensor) -> list[Hypothesis]:
    """Generate the most likely token at each step until the end token.

    Args:
        scorer: Scorer of next tokens.
        start: The start token.
        end: The end token.
        max_lengths: (B,) maximum number of tokens of each sentence.

    Returns:
        One hypothesis per sentence.
    """
    return generate(scorer, _choose_likeliest, start=start, end=end, max_lengths=max_lengths)


def generate(
    scorer: Scorer, choose: Choose, *, start: int, end: int, max_lengths: Tensor, width: int = 1
) -> list[Hypothesis]:
    """Generate hypotheses from left to right, one token per step.

    Args:
        scorer: Scorer of next tokens.
        choose: Function that selects the next tokens.
        start: The start token.
        end: The end token.
        max_lengths: (B,) maximum number of tokens of each sentence.
        width: Number of hypotheses per sentence.

    Returns:
        All hypotheses, grouped by sentence.
    """
    num_steps = int(max_lengths.max())
    state = scorer.start(width, num_steps)
    max_lengths = max_lengths.repeat_interleave(width)  # (B·W,)
    limits = max_lengths.to(scorer.device)
    rows = torch.arange(len(limits), device=scorer.device)
    all_tokens = torch.full((len(rows), num_steps), end, device=scorer.device)
    all_values = torch.zeros(len(rows), num_steps, device=scorer.device)
    tokens = torch.full_like(rows, start)
    is_done = limits < 1
    watch = current_watch()
    for step in range(num_steps):
        log_probs, state = scorer.step(tokens, state)
        values, tokens = choose(log_probs, step, rows)  # (N,)
        all_tokens[rows, step] = tokens
        all_values[rows, step] = values.to(all_values.dtype)
        if watch:
            watch(partial(_read_first, all_tokens, step + 1))
        is_done = is_done | (tokens == end) | (limits <= step + 1)
        if not should_check(step, scorer.device):
            continue
        sentences = find_active(is_done.view(-1, width).all(1), scorer)
        if sentences is None:
            continue
        if not len(sentences):
            break
        state = select_sentences(state, sentences, beams=width)
        kept = (sentences[:, None] * width + torch.arange(width, device=rows.device)).flatten()
        rows, tokens, limits, is_done = (part[kept] for part in (rows, tokens, limits, is_done))
    return _collect(all_tokens, all_values, end=end, max_lengths=max_lengths)


def _read_first(tokens: Tensor, length: int) -> tuple[int, ...]:
    return tuple(tokens[0, :length].tolist())


def find_active(is_done: Tensor, scorer: Scorer) -> Tensor | None:
    """Return the sentences to continue with, none if all are done; None = no change.

    Sentences that are done leave the batch when they are many.

    Args:
        is_done: (B,) whether the search of a sentence has ended.
        scorer: The scorer; some cannot go on without a part of the sentences.
    """
    num_done = int(is_done.sum())
    can_leave = num_done >= MIN_DONE_SHARE * len(is_done) and can_drop_sentences(scorer)
    if not num_done or not (can_leave or num_done == len(is_done)):
        return None
    return (~is_done).nonzero().squeeze(1)


def should_check(step: int, device: torch.device) -> bool:
    """Return whether to check at this step if all sentences are done."""
    return device.type == "cpu" or step % CHECK_EVERY == CHECK_EVERY - 1


def _choose_likeliest(log_probs: Tensor, step: int, rows: Tensor) -> tuple[Tensor, Tensor]:
    values, tokens = log_probs.max(-1)  # (N,)
    return values, tokens


def _collect(tokens: Tensor, values: Tensor, *, end: int, max_lengths: Tensor) -> list[Hypothesis]:
    """Return the hypotheses of tokens and log-probabilities (B·W, T)."""
    rows, log_probs = tokens.tolist(), values.tolist()
    hypotheses = []
    for row, steps, limit in zip(rows, log_probs, max_lengths.tolist(), strict=True):
        length = min(row.index(end) + 1 if end in row else len(row), limit)
        total = sum(steps[:length])
        hypotheses.append(Hypothesis(tuple(row[:length]), total, tuple(steps[:length]), total))
    return hypotheses
