"""Greedy search, and the generation loop that sampling shares."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer

CHECK_EVERY = 4
"""Steps between checks on a GPU whether all sentences are done, since each check synchronises."""


Choose: TypeAlias = Callable[[Tensor, int], tuple[Tensor, Tensor]]
"""Log-probabilities (B·W, V) and step index → log-probabilities and ids of the tokens, (B·W,)."""


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
    tokens = torch.full((scorer.batch * width,), start, device=scorer.device)
    is_done = limits < 1
    chosen, values = [], []
    for step in range(num_steps):
        log_probs, state = scorer.step(tokens, state)
        value, tokens = choose(log_probs, step)  # (B·W,)
        chosen.append(tokens)
        values.append(value)
        is_done = is_done | (tokens == end) | (limits <= step + 1)
        if should_check(step, scorer.device) and bool(is_done.all()):
            break
    return _collect(chosen, values, end=end, max_lengths=max_lengths)


def should_check(step: int, device: torch.device) -> bool:
    """Return whether to check at this step if all sentences are done."""
    return device.type == "cpu" or step % CHECK_EVERY == CHECK_EVERY - 1


def _choose_likeliest(log_probs: Tensor, _: int) -> tuple[Tensor, Tensor]:
    value, tokens = log_probs.max(-1)  # (B·W,)
    return value, tokens


def _collect(
    chosen: list[Tensor], values: list[Tensor], *, end: int, max_lengths: Tensor
) -> list[Hypothesis]:
    if not chosen:
        return [Hypothesis((), 0.0, (), 0.0) for _ in max_lengths]
    rows = torch.stack(chosen, 1).tolist()
    log_probs = torch.stack(values, 1).tolist()
    hypotheses = []
    for row, steps, limit in zip(rows, log_probs, max_lengths.tolist(), strict=True):
        length = min(row.index(end) + 1 if end in row else len(row), limit)
        total = sum(steps[:length])
        hypotheses.append(Hypothesis(tuple(row[:length]), total, tuple(steps[:length]), total))
    return hypotheses
