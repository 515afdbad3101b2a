"""Greedy search, and the generation loop that sampling shares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from regard.models.interfaces import State, select_sentences
from regard.search.cuda_graphs import Steps, search_steps
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer, can_drop_sentences
from regard.search.top_k import most_likely
from regard.search.watching import current_watch

CHECK_EVERY = 4
"""Steps between checks on a GPU whether all sentences are done, since each check synchronises."""

MAX_WASTED = 0.25
"""Share of the rows computed for sentences that are done, summed over steps, from which they leave
the batch, which copies the others."""

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
    # Samples depend on the sentences, so their steps are not captured.
    key = (greedy, start, end, width) if choose is _choose_likeliest else None
    with search_steps(scorer, max_lengths, key) as steps:
        can_leave = can_drop_sentences(steps.scorer) and not steps.is_captured

        def step(index: int, rows: _Rows | None) -> _Rows:
            rows = rows or _begin(steps, start=start, width=width)
            log_probs, state = steps.scorer.step(rows.tokens, rows.state)
            values, tokens = choose(log_probs, index, rows.numbers)  # (N,)
            is_done = rows.is_done | (tokens == end) | (rows.limits <= index + 1)
            return replace(rows, state=state, tokens=tokens, values=values, is_done=is_done)

        rows, found, watch = None, [], current_watch()
        sentences = ActiveSentences(can_leave=can_leave)
        for index in range(steps.num_steps):
            rows = steps.run(index, partial(step, index, rows))
            found.append((rows.numbers, rows.tokens, rows.values))
            if watch:
                watch(partial(_read_first, found, end))
            if not should_check(index, scorer.device):
                continue
            active = sentences.find(rows.is_done.view(-1, width).all(1))
            if active is not None and not len(active):
                break
            if active is not None:
                rows = rows.select(active, width)
        num_rows = steps.scorer.batch * width
        lengths = max_lengths.repeat_interleave(width).tolist()
        return _collect(found, num_rows, end=end, max_lengths=lengths)


def _read_first(found: Sequence[tuple[Tensor, Tensor, Tensor]], end: int) -> tuple[int, ...]:
    """Return the tokens of the first hypothesis, from the results of all steps."""
    tokens = [int(tokens[0]) for numbers, tokens, _ in found if not numbers[0]]
    # On a GPU, a few steps follow the end.
    return tuple(tokens[: tokens.index(end) + 1] if end in tokens else tokens)


@dataclass(frozen=True)
class _Rows:
    """The hypotheses of all sentences between two steps."""

    state: State
    tokens: Tensor  # (N,) the last token of each hypothesis
    values: Tensor  # (N,) its log-probability
    limits: Tensor  # (N,) maximum number of tokens
    is_done: Tensor  # (N,) whether the hypothesis has ended
    numbers: Tensor  # (N,) index of the hypothesis among those of the whole batch

    def select(self, sentences: Tensor, width: int) -> "_Rows":
        """Return the hypotheses of some sentences, (B,)."""
        kept = (sentences[:, None] * width + torch.arange(width, device=sentences.device)).flatten()
        return _Rows(
            state=select_sentences(self.state, sentences, beams=width),
            tokens=self.tokens[kept],
            values=self.values[kept],
            limits=self.limits[kept],
            is_done=self.is_done[kept],
            numbers=self.numbers[kept],
        )


def _begin(steps: Steps, *, start: int, width: int) -> _Rows:
    """Return the hypotheses of the start token."""
    limits = steps.limits.repeat_interleave(width)  # (B·W,)
    return _Rows(
        state=steps.scorer.start(width, steps.capacity),
        tokens=torch.full_like(limits, start),
        values=torch.zeros(len(limits), device=limits.device),
        limits=limits,
        is_done=limits < 1,
        numbers=torch.arange(len(limits), device=limits.device),
    )


class ActiveSentences:
    """Finds the sentences that are still searched.

    Args:
        can_leave: Whether search can go on with a part of the sentences.
    """

    def __init__(self, *, can_leave: bool) -> None:
        self._can_leave = can_leave
        self._wasted = 0.0

    def find(self, is_done: Tensor) -> Tensor | None:
        """Return the sentences to continue with, none if all are done; None = no change.

        Sentences that are done leave the batch when they have cost more than the copies of the
        others will.

        Args:
            is_done: (B,) whether the search of a sentence has ended.
        """
        num_done = sum(is_done.tolist())  # faster than a sum of so few values by torch
        self._wasted += num_done / len(is_done)
        is_worthwhile = self._can_leave and self._wasted >= MAX_WASTED
        if not num_done or not (is_worthwhile or num_done == len(is_done)):
            return None
        self._wasted = 0.0
        return (~is_done).nonzero().squeeze(1)


def should_check(step: int, device: torch.device) -> bool:
    """Return whether to check at this step if all sentences are done."""
    return device.type == "cpu" or step % CHECK_EVERY == CHECK_EVERY - 1


def _choose_likeliest(log_probs: Tensor, step: int, rows: Tensor) -> tuple[Tensor, Tensor]:
    return most_likely(log_probs)


def _collect(
    found: Sequence[tuple[Tensor, Tensor, Tensor]],
    num_rows: int,
    *,
    end: int,
    max_lengths: Sequence[int],
) -> list[Hypothesis]:
    """Return the hypotheses.

    Args:
        found: Numbers, tokens and log-probabilities (N,) of each step.
        num_rows: Number of hypotheses, with those of padding.
        end: The end token.
        max_lengths: Maximum number of tokens of each hypothesis.
    """
    if not found:
        return [Hypothesis((), 0.0, (), 0.0)] * len(max_lengths)
    device = found[0][0].device
    all_tokens = torch.full((len(found), num_rows), end, device=device)
    all_values = torch.zeros(len(found), num_rows, device=device)
    for index, (numbers, tokens, values) in enumerate(found):
        all_tokens[index, numbers] = tokens
        all_values[index, numbers] = values.to(all_values.dtype)
    num_real = len(max_lengths)
    rows, log_probs = (part.T[:num_real].tolist() for part in (all_tokens, all_values))
    hypotheses = []
    for row, steps, limit in zip(rows, log_probs, max_lengths, strict=True):
        length = min(row.index(end) + 1 if end in row else len(row), limit)
        total = sum(steps[:length])
        hypotheses.append(Hypothesis(tuple(row[:length]), total, tuple(steps[:length]), total))
    return hypotheses
