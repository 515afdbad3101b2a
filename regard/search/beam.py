"""Beam search over a batch of sentences."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.interfaces import reorder
from regard.search.candidates import Candidates, build_candidates, distinct
from regard.search.greedy import should_check
from regard.search.hypothesis import Hypothesis
from regard.search.length_penalty import length_scale
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig
from regard.search.stopping import Stopping
from regard.search.tree import current_recorder


def beam_search(
    scorer: Scorer,
    *,
    start: int,
    end: int,
    max_lengths: Tensor,
    config: SearchConfig,
    num_best: int = 1,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence by beam search.

    By default, the search of a sentence ends when `beams` of its hypotheses have ended and no
    active hypothesis is better than the best of them. The number alone would not suffice: beside
    one good hypothesis, a confident model has only bad ones that end early. The result of a
    sentence does not depend on the other sentences of the batch.

    Args:
        scorer: Scorer of next tokens.
        start: The start token.
        end: The end token.
        max_lengths: (B,) maximum number of tokens of each sentence.
        config: Number of beams and groups, length penalty and rule of stopping.
        num_best: Number of hypotheses to return per sentence.

    Returns:
        The best hypotheses of each sentence, best first.
    """
    if num_best > config.beams:
        raise ConfigError(
            f"`nbest` must be at most the number of beams ({config.beams}), but is {num_best}. "
            "Ask for more beams."
        )
    beams, limits = config.beams, max_lengths.to(scorer.device)
    candidates = build_candidates(config, end=end)
    stopping = Stopping(config, limits, num_best=num_best)
    if recorder := current_recorder():
        recorder.start()
    # Start with one hypothesis per group: equal beams would give equal results.
    totals = torch.full((scorer.batch, beams), -torch.inf, device=scorer.device)
    totals[:, :: beams // config.groups] = 0.0
    tokens = torch.full((scorer.batch * beams,), start, device=scorer.device)
    num_steps = int(max_lengths.max())
    state = scorer.start(beams, num_steps)
    steps: list[_Step] = []
    for index in range(num_steps):
        log_probs, state = scorer.step(tokens, state)
        is_last = limits <= index + 1
        step = _Step.choose(totals, log_probs, candidates=candidates, is_last=is_last, end=end)
        steps.append(step)
        if recorder:
            recorder.add(step)
        totals = step.select(step.totals.masked_fill(step.is_end, -torch.inf))
        is_done = stopping.update(step.finished_totals(), totals, length=index + 1)  # (B,)
        if should_check(index, scorer.device) and bool(is_done.all()):
            break
        totals = totals.masked_fill(is_done[:, None], -torch.inf)
        tokens = step.select(step.tokens).flatten()
        state = reorder(state, step.rows())
    ranked = _backtrack(steps, scorer.batch, config)
    if config.groups > 1:
        ranked = [distinct(hypotheses) for hypotheses in ranked]
    return [hypotheses[:num_best] for hypotheses in ranked]


@dataclass(frozen=True)
class _Step:
    """The 2W candidates of each sentence at one step."""

    totals: Tensor  # (B, 2W) log-probability of the hypothesis
    log_probs: Tensor  # (B, 2W) log-probability of its last token
    tokens: Tensor  # (B, 2W) its last token
    parents: Tensor  # (B, 2W) the beam it continues
    is_end: Tensor  # (B, 2W) whether it has ended
    is_finished: Tensor  # (B, W) whether it has ended among the W most likely: a result
    kept: Tensor  # (B, W) indices of the continuations that become the next beams

    @classmethod
    def choose(
        cls,
        totals: Tensor,
        log_probs: Tensor,
        *,
        candidates: Candidates,
        is_last: Tensor,
        end: int,
    ) -> "_Step":
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


def _backtrack(steps: list[_Step], batch: int, config: SearchConfig) -> list[list[Hypothesis]]:
    """Follow each result back to the start token; return the best of each sentence first."""
    lists = [
        {name: getattr(step, name).tolist() for name in ("log_probs", "tokens", "parents", "kept")}
        for step in steps
    ]
    hypotheses: list[list[Hypothesis]] = [[] for _ in range(batch)]
    for last, step in enumerate(steps):
        totals = step.totals.tolist()
        for row, result in step.is_finished.nonzero().tolist():
            tokens, log_probs, current = [], [], result
            for index in range(last, -1, -1):
                tokens.append(lists[index]["tokens"][row][current])
                log_probs.append(lists[index]["log_probs"][row][current])
                beam = lists[index]["parents"][row][current]
                current = lists[index - 1]["kept"][row][beam]
            total = totals[row][result]
            value = total / length_scale(float(len(tokens)), config)
            hypotheses[row].append(
                Hypothesis(tuple(tokens[::-1]), total, tuple(log_probs[::-1]), value)
            )
    # The sort is stable: of equal values the first wins, so one beam equals greedy search.
    return [sorted(group, key=lambda hypothesis: -hypothesis.value) for group in hypotheses]
