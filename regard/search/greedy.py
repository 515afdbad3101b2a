"""Greedy search: the likeliest token at every step."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer

LOOK_EVERY = 4
"""On a device, asking whether all sentences are done makes the host wait: ask now and then."""


Choose: TypeAlias = Callable[[Tensor, int], tuple[Tensor, Tensor]]
"""Log-probabilities (B·W, V) and the step → those of the chosen tokens (B·W,), and the tokens."""


def greedy(scorer: Scorer, *, start: int, end: int, max_lengths: Tensor) -> list[Hypothesis]:
    """Take the likeliest token at every step until the end token.

    Args:
        scorer: What gives log-probabilities.
        start: The start token.
        end: The end token.
        max_lengths: (B,) most tokens of each sentence, each by its own source, so that a
            sentence's result never depends on the sentences beside it.

    Returns:
        One hypothesis a sentence.
    """
    return walk(scorer, _take_likeliest, start=start, end=end, max_lengths=max_lengths)


def walk(
    scorer: Scorer, choose: Choose, *, start: int, end: int, max_lengths: Tensor, width: int = 1
) -> list[Hypothesis]:
    """Write every hypothesis from left to right, never going back on a choice.

    Args:
        scorer: What gives log-probabilities.
        choose: What chooses the next tokens.
        start: The start token.
        end: The end token.
        max_lengths: (B,) most tokens of each sentence.
        width: Hypotheses a sentence.

    Returns:
        All hypotheses, those of a sentence side by side.
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
        if may_look(step, scorer.device) and bool(is_done.all()):
            break
    return _collect(chosen, values, end=end, max_lengths=max_lengths)


def may_look(step: int, device: torch.device) -> bool:
    """Tell whether a search may ask at this step whether it is done."""
    return device.type == "cpu" or step % LOOK_EVERY == LOOK_EVERY - 1


def _take_likeliest(log_probs: Tensor, _: int) -> tuple[Tensor, Tensor]:
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
