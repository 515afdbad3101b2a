"""Beam search over a batch of sentences."""

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.interfaces import State, reorder, select_sentences, widen
from regard.search.backtracking import Step, find_best, read_best
from regard.search.candidates import build_candidates
from regard.search.cuda_graphs import Steps, search_steps
from regard.search.greedy import ActiveSentences, should_check
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer, can_drop_sentences
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
    recorder, watch = current_recorder(), current_watch()
    if recorder:
        recorder.start()
    # The next search would overwrite recorded steps in the memory of CUDA graphs.
    key = None if recorder else (beam_search, config, num_best, start, end)
    with search_steps(scorer, max_lengths, key) as steps:
        search = _BeamSearch(steps, config, num_best=num_best, start=start, end=end)
        found, beams = [], None
        searched = ActiveSentences(can_leave=search.can_leave and not recorder)
        sentences = torch.arange(steps.scorer.batch, device=scorer.device)
        for index in range(steps.num_steps):
            beams, step = steps.run(index, partial(search.step, index, beams))
            found.append(replace(step, sentences=sentences))
            if recorder:
                recorder.add(step)
            if watch:
                watch(partial(read_best, found))
            if not should_check(index, scorer.device):
                continue
            active = searched.find(beams.is_done)
            if active is not None and not len(active):
                break
            if active is not None:
                beams, sentences = beams.select(active), sentences[active]
        best = find_best(found, steps.scorer.batch, config=config, num_best=num_best)
    return best[: scorer.batch]


@dataclass(frozen=True)
class _Beams:
    """The beams of each sentence between two steps."""

    state: State
    tokens: Tensor  # (B·W,) the last token of each beam; (B,) if all beams of a sentence are equal
    totals: Tensor  # (B, W) log-probability of each beam; -inf = no hypothesis
    limits: Tensor  # (B,) maximum number of tokens of each sentence
    stopping: Stopping
    is_done: Tensor  # (B,) whether the search of a sentence has ended

    def select(self, sentences: Tensor) -> "_Beams":
        """Return the beams of some sentences, (B,)."""
        beams = self.totals.shape[1]
        return _Beams(
            state=select_sentences(self.state, sentences, beams=beams),
            tokens=self.tokens.view(-1, beams)[sentences].flatten(),
            totals=self.totals[sentences],
            limits=self.limits[sentences],
            stopping=self.stopping.select(sentences),
            is_done=self.is_done[sentences],
        )


class _BeamSearch:
    """The steps of a beam search. Each computes from the one before, without waiting for a GPU.

    Args:
        steps: The scorer and the maximum lengths.
        config: The settings.
        num_best: Number of hypotheses to return per sentence.
        start: The start token.
        end: The end token.
    """

    def __init__(
        self, steps: Steps, config: SearchConfig, *, num_best: int, start: int, end: int
    ) -> None:
        self.can_leave = can_drop_sentences(steps.scorer) and not steps.is_captured
        self._scorer, self._limits, self._capacity = steps.scorer, steps.limits, steps.capacity
        self._config, self._num_best = config, num_best
        self._start, self._end = start, end
        self._candidates = build_candidates(config, end=end)

    def step(self, index: int, beams: _Beams | None) -> "tuple[_Beams, Step]":
        """Return the beams after a step, and the candidates it chose from.

        Args:
            index: Index of the step.
            beams: The beams before it; None = those of the start token.
        """
        beams = beams or self._begin()
        log_probs, state = self._scorer.step(beams.tokens, beams.state)
        if len(beams.tokens) < beams.totals.numel():
            log_probs = log_probs.repeat_interleave(self._config.beams, dim=0)
            state = widen(state, self._config.beams)
        step = Step.choose(
            beams.totals,
            log_probs,
            candidates=self._candidates,
            limits=beams.limits,
            length=index + 1,
            end=self._end,
        )
        stopping, is_done = beams.stopping.update(step.finished, step.next_totals, length=index + 1)
        next_beams = _Beams(
            state=reorder(state, step.next_rows.flatten()),
            tokens=step.next_tokens.flatten(),
            totals=step.next_totals.masked_fill(is_done[:, None], -torch.inf),
            limits=beams.limits,
            stopping=stopping,
            is_done=is_done,
        )
        return next_beams, step

    def _begin(self) -> _Beams:
        """Return the beams of the start token: one hypothesis per group."""
        config, limits = self._config, self._limits
        # Equal beams would give equal results.
        totals = torch.full((len(limits), config.beams), -torch.inf, device=limits.device)
        totals[:, :: config.beams // config.groups] = 0.0
        # All beams begin with the same token, which one hypothesis per sentence processes.
        width = 1 if self.can_leave else config.beams
        return _Beams(
            state=self._scorer.start(width, self._capacity),
            tokens=torch.full((width * len(limits),), self._start, device=limits.device),
            totals=totals,
            limits=limits,
            stopping=Stopping.start(config, limits, num_best=self._num_best),
            is_done=limits < 1,
        )
