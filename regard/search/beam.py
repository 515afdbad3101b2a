"""Beam search over a batch of sentences."""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.interfaces import reorder, select_sentences
from regard.search.candidates import Candidates, build_candidates, distinct
from regard.search.greedy import find_active, should_check
from regard.search.hypothesis import Hypothesis
from regard.search.length_penalty import length_scale
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig
from regard.search.stopping import Stopping
from regard.search.tree import current_recorder
from regard.search.watching import current_watch


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
    watch = current_watch()
    if recorder := current_recorder():
        recorder.start()
    # Start with one hypothesis per group: equal beams would give equal results.
    totals = torch.full((scorer.batch, beams), -torch.inf, device=scorer.device)
    totals[:, :: beams // config.groups] = 0.0
    tokens = torch.full((scorer.batch * beams,), start, device=scorer.device)
    num_steps = int(max_lengths.max())
    state = scorer.start(beams, num_steps)
    steps: list[_Step] = []
    sentences = torch.arange(scorer.batch, device=scorer.device)
    for index in range(num_steps):
        log_probs, state = scorer.step(tokens, state)
        is_last = limits <= index + 1
        step = _Step.choose(totals, log_probs, candidates=candidates, is_last=is_last, end=end)
        steps.append(replace(step, sentences=sentences))
        if recorder:
            recorder.add(step)
        if watch:
            watch(partial(_read_best, steps))
        totals = step.select(step.totals.masked_fill(step.is_end, -torch.inf))
        is_done = stopping.update(step.finished_totals(), totals, length=index + 1)  # (B,)
        totals = totals.masked_fill(is_done[:, None], -torch.inf)
        tokens = step.select(step.tokens).flatten()
        active = find_active(is_done, scorer) if should_check(index, scorer.device) else None
        if active is not None and not len(active):
            break
        state = reorder(state, step.rows())
        if active is not None and not recorder:
            state = select_sentences(state, active, beams=beams)
            totals, limits, sentences = (part[active] for part in (totals, limits, sentences))
            tokens = tokens.view(-1, beams)[active].flatten()
            stopping.select(active)
    return _find_best(steps, scorer.batch, config=config, num_best=num_best)


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
    sentences: Tensor | None = None  # (B,) the sentence of each row

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


def _read_best(steps: list[_Step]) -> tuple[int, ...]:
    """Return the tokens of the most likely active hypothesis of the first sentence."""
    last = steps[-1]
    assert last.sentences is not None
    (rows,) = (last.sentences == 0).nonzero(as_tuple=True)
    if not len(rows):
        return ()
    candidate = int(last.kept[int(rows[0]), 0])
    result = _Result(0.0, 0.0, len(steps) - 1, 0, candidate)
    return _Paths(steps).hypothesis(result).tokens


def _find_best(
    steps: list[_Step], batch: int, *, config: SearchConfig, num_best: int
) -> list[list[Hypothesis]]:
    """Return the best results of each sentence, best first."""
    found: list[list[_Result]] = [[] for _ in range(batch)]
    for last, step in enumerate(steps):
        assert step.sentences is not None
        sentences, totals = step.sentences.tolist(), step.totals.tolist()
        scale = length_scale(float(last + 1), config)
        for row, candidate in step.is_finished.nonzero().tolist():
            total = totals[row][candidate]
            found[sentences[row]].append(
                _Result(total / scale, total, last, sentences[row], candidate)
            )
    paths = _Paths(steps)
    best = []
    for results in found:
        # The sort is stable: of equal values the first wins, so one beam equals greedy search.
        ranked = sorted(results, key=lambda result: -result.value)
        if config.groups == 1:
            best.append([paths.hypothesis(result) for result in ranked[:num_best]])
        else:
            best.append(distinct(paths.hypothesis(result) for result in ranked)[:num_best])
    return best


class _Result(NamedTuple):
    """A hypothesis that has ended."""

    value: float  # by which hypotheses are ranked
    total: float  # its log-probability
    last: int  # its last step
    sentence: int
    candidate: int  # its index among the candidates of the last step


class _Paths:
    """Paths from the results of a search back to the start token."""

    def __init__(self, steps: list[_Step]) -> None:
        names = ("log_probs", "tokens", "parents", "kept")
        self._steps = [{name: getattr(step, name).tolist() for name in names} for step in steps]
        # The row of a sentence changes when others leave the batch.
        self._rows = [
            {sentence: row for row, sentence in enumerate(step.sentences.tolist())}
            for step in steps
            if step.sentences is not None
        ]

    def hypothesis(self, result: "_Result") -> Hypothesis:
        """Return the hypothesis of a result."""
        tokens, log_probs, current = [], [], result.candidate
        for index in range(result.last, -1, -1):
            step, row = self._steps[index], self._rows[index][result.sentence]
            tokens.append(step["tokens"][row][current])
            log_probs.append(step["log_probs"][row][current])
            if index:
                before = self._steps[index - 1]["kept"][self._rows[index - 1][result.sentence]]
                current = before[step["parents"][row][current]]
        return Hypothesis(tuple(tokens[::-1]), result.total, tuple(log_probs[::-1]), result.value)
