"""Candidates of the steps of beam search, and the paths from results back to the start token."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.search.candidates import Candidates, distinct
from regard.search.hypothesis import Hypothesis
from regard.search.length_penalty import length_scale
from regard.search.settings import SearchConfig


@dataclass(frozen=True)
class Step:
    """The 2W candidates of each sentence at one step."""

    totals: Tensor
    """(B, 2W) log-probability of the hypothesis."""
    log_probs: Tensor
    """(B, 2W) log-probability of its last token."""
    tokens: Tensor
    """(B, 2W) its last token."""
    parents: Tensor
    """(B, 2W) the beam it continues."""
    is_end: Tensor
    """(B, 2W) whether it has ended."""
    is_finished: Tensor
    """(B, W) whether it has ended among the W most likely: a result."""
    kept: Tensor
    """(B, W) indices of the continuations that become the next beams."""
    sentences: Tensor | None = None
    """(B,) the sentence of each row."""

    @classmethod
    def choose(
        cls,
        totals: Tensor,
        log_probs: Tensor,
        *,
        candidates: Candidates,
        is_last: Tensor,
        end: int,
    ) -> "Step":
        """Select continuations of the beams.

        Args:
            totals: (B, W) log-probability of each beam; -inf = no hypothesis.
            log_probs: (B·W, V) log-probabilities of the next token.
            candidates: Choice of the continuations.
            is_last: (B,) whether the sentence reaches its maximum length with this token.
            end: The end token.
        """
        batch, beams = totals.shape
        vocab = log_probs.shape[-1]
        best, indices = candidates.choose(totals, log_probs)  # (B, 2W)
        tokens = indices % vocab
        is_end = (tokens == end) | is_last[:, None]
        return cls(
            totals=best,
            log_probs=log_probs.view(batch, -1).gather(1, indices),
            tokens=tokens,
            parents=indices // vocab,
            is_end=is_end,
            is_finished=is_end[:, :beams] & best[:, :beams].isfinite(),
            kept=candidates.keep(is_end),
        )

    def finished_totals(self) -> Tensor:
        """Return the log-probabilities of the results, (B, W); -inf = none."""
        beams = self.is_finished.shape[1]
        return self.totals[:, :beams].masked_fill(~self.is_finished, -torch.inf)

    def select(self, values: Tensor) -> Tensor:
        """Select the values of the next beams, (B, 2W) → (B, W)."""
        return values.gather(1, self.kept)

    def rows(self) -> Tensor:
        """Return the row of the state that each next beam continues, (B·W,)."""
        batch, beams = self.kept.shape
        first = torch.arange(batch, device=self.kept.device)[:, None] * beams
        return (self.select(self.parents) + first).flatten()


def find_best(
    steps: Sequence[Step], batch: int, *, config: SearchConfig, num_best: int
) -> list[list[Hypothesis]]:
    """Return the best results of each sentence, best first.

    Args:
        steps: The steps of a search, which know the sentences of their rows.
        batch: Number of sentences.
        config: The settings.
        num_best: Number of hypotheses to return per sentence.
    """
    if not steps:
        return [[] for _ in range(batch)]
    results = torch.stack([_by_sentence(step, batch) for step in steps], dim=1)  # (B, T, W)
    scales = [length_scale(float(index + 1), config) for index in range(len(steps))]
    values = results / torch.tensor(scales, device=results.device)[:, None]
    # Equal results of several groups are dropped, so all of them are needed.
    num_found = int(results.isfinite().sum((1, 2)).max())
    num_paths = min(num_best, num_found) if config.groups == 1 else num_found
    # The sort is stable: of equal values the first wins, so one beam equals greedy search.
    order = values.flatten(1).argsort(dim=1, descending=True, stable=True)[:, :num_paths]
    tokens, log_probs = _trace(
        steps, batch, last=order // config.beams, chosen=order % config.beams
    )
    columns = (
        results.flatten(1).gather(1, order),
        order // config.beams + 1,
        tokens,
        log_probs,
    )
    best = []
    for row in zip(*(column.tolist() for column in columns), strict=True):
        hypotheses = [
            Hypothesis(tuple(ids[:length]), total, tuple(each[:length]), total / scales[length - 1])
            for total, length, ids, each in zip(*row, strict=True)
            if total > -torch.inf
        ]
        best.append((hypotheses if config.groups == 1 else distinct(hypotheses))[:num_best])
    return best


def _by_sentence(step: Step, batch: int) -> Tensor:
    """Return the log-probabilities of the results of a step, (B, W), for all sentences."""
    finished = step.finished_totals()
    if step.sentences is None or len(step.sentences) == batch:
        return finished
    return finished.new_full((batch, finished.shape[1]), -torch.inf).index_copy(
        0, step.sentences, finished
    )


def _trace(
    steps: Sequence[Step], batch: int, *, last: Tensor, chosen: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the tokens and their log-probabilities (B, N, T) of hypotheses.

    Args:
        steps: The steps of a search.
        batch: Number of sentences.
        last: (B, N) the last step of each hypothesis.
        chosen: (B, N) its index among the candidates of its last step.
    """
    tokens, log_probs, current = [], [], chosen
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        assert step.sentences is not None
        is_whole = len(step.sentences) == batch
        # The row of a sentence changes when others leave the batch; of those that have left, any.
        rows = step.sentences.new_zeros(batch)
        rows[step.sentences] = torch.arange(len(step.sentences), device=rows.device)
        by_sentence = [
            part if is_whole else part[rows]
            for part in (step.tokens, step.log_probs, step.parents, step.kept)
        ]
        words, values, parents, kept = by_sentence
        if index + 1 < len(steps):
            before = kept.gather(1, current)
            current = torch.where(last > index, before, chosen)
        tokens.append(words.gather(1, current))
        log_probs.append(values.gather(1, current))
        current = parents.gather(1, current)
    return torch.stack(tokens[::-1], dim=2), torch.stack(log_probs[::-1], dim=2)
