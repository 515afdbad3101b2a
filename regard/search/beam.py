"""Beam search over a whole batch of sentences, for anything that can start, step and reorder."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.interfaces import reorder
from regard.search.greedy import may_look
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig


def beam_search(
    scorer: Scorer,
    *,
    start: int,
    end: int,
    max_lengths: Tensor,
    config: SearchConfig,
    num_best: int = 1,
) -> list[list[Hypothesis]]:
    """Keep the likeliest `beams` hypotheses of each sentence at every step.

    A sentence is done when `beams` of its hypotheses have ended and none that goes on is better
    than the best of them: a sure model has one good hypothesis, and beside it only bad ones that
    end early. What is found for a sentence depends on its own log-probabilities alone, never on
    the sentences beside it.

    Args:
        scorer: What gives log-probabilities.
        start: The start token.
        end: The end token.
        max_lengths: (B,) most tokens of each sentence.
        config: How many beams, and how lengths are made comparable.
        num_best: How many hypotheses to return a sentence.

    Returns:
        For each sentence its best hypotheses, best first.
    """
    if num_best > config.beams:
        raise ConfigError(
            f"`nbest` must be at most the number of beams ({config.beams}), but is {num_best}. "
            "Ask for more beams."
        )
    beams, limits = config.beams, max_lengths.to(scorer.device)
    # Only one hypothesis at first: equal beams would all find the same.
    totals = torch.full((scorer.batch, beams), -torch.inf, device=scorer.device)
    totals[:, 0] = 0.0
    tokens = torch.full((scorer.batch * beams,), start, device=scorer.device)
    num_ended = torch.zeros(scorer.batch, dtype=torch.long, device=scorer.device)
    best_ended = torch.full((scorer.batch,), -torch.inf, device=scorer.device)
    num_steps = int(max_lengths.max())
    state = scorer.start(beams, num_steps)
    trail: list[_Step] = []
    for number in range(num_steps):
        log_probs, state = scorer.step(tokens, state)
        step = _Step.choose(totals, log_probs, is_last=limits <= number + 1, end=end)
        trail.append(step)
        totals = step.take(step.totals.masked_fill(step.is_end, -torch.inf))
        # Lengths are made comparable as they will be in the end.
        scale = float(number + 1) ** config.length_penalty
        num_ended = num_ended + step.is_found.sum(1)
        best_ended = best_ended.maximum(step.best_found() / scale)
        is_done = num_ended >= beams  # (B,)
        if beams > 1:
            is_done &= best_ended >= totals.amax(1) / scale
        if may_look(number, scorer.device) and bool(is_done.all()):
            break
        totals = totals.masked_fill(is_done[:, None], -torch.inf)
        tokens = step.take(step.words).flatten()
        state = reorder(state, step.rows())
    return [found[:num_best] for found in _trace(trail, scorer.batch, config)]


@dataclass(frozen=True)
class _Step:
    """The 2W likeliest continuations of each sentence at one step, the likeliest first."""

    totals: Tensor  # (B, 2W) log-probability of the whole hypothesis
    said: Tensor  # (B, 2W) log-probability of its last token
    words: Tensor  # (B, 2W) its last token
    parents: Tensor  # (B, 2W) the beam it continues
    is_end: Tensor  # (B, 2W) it goes no further
    is_found: Tensor  # (B, W) it ended among the W likeliest: a result
    kept: Tensor  # (B, W) which continuations become the next beams

    @classmethod
    def choose(cls, totals: Tensor, log_probs: Tensor, *, is_last: Tensor, end: int) -> "_Step":
        """Choose among all continuations of the beams.

        Args:
            totals: (B, W) log-probability of each beam; minus infinity = no hypothesis.
            log_probs: (B·W, V) of the next token.
            is_last: (B,) the sentence may have no more tokens after this one.
            end: The end token.
        """
        batch, beams = totals.shape
        vocab = log_probs.shape[-1]
        sums = (totals.flatten()[:, None] + log_probs).view(batch, -1)  # (B, W·V)
        # Twice as many as needed: even if half of them end, enough are left to go on.
        best, places = sums.topk(min(2 * beams, beams * vocab), dim=1)  # (B, 2W)
        words = places % vocab
        is_end = (words == end) | is_last[:, None]
        return cls(
            totals=best,
            said=log_probs.view(batch, -1).gather(1, places),
            words=words,
            parents=places // vocab,
            is_end=is_end,
            is_found=is_end[:, :beams] & best[:, :beams].isfinite(),
            # A stable sort by "has ended" puts those that go on first and keeps their order.
            kept=is_end.int().argsort(dim=1, stable=True)[:, :beams],
        )

    def best_found(self) -> Tensor:
        """Return the log-probability of the likeliest result, (B,); minus infinity = none."""
        beams = self.is_found.shape[1]
        return self.totals[:, :beams].masked_fill(~self.is_found, -torch.inf).amax(1)

    def take(self, values: Tensor) -> Tensor:
        """Return what belongs to the next beams, (B, 2W) → (B, W)."""
        return values.gather(1, self.kept)

    def rows(self) -> Tensor:
        """Return the row of the state that each next beam continues, (B·W,)."""
        batch, beams = self.kept.shape
        first = torch.arange(batch, device=self.kept.device)[:, None] * beams
        return (self.take(self.parents) + first).flatten()


def _trace(trail: list[_Step], batch: int, config: SearchConfig) -> list[list[Hypothesis]]:
    """Walk back from every result to the start token; the best of each sentence come first."""
    on_host = [
        {name: getattr(step, name).tolist() for name in ("said", "words", "parents", "kept")}
        for step in trail
    ]
    found: list[list[Hypothesis]] = [[] for _ in range(batch)]
    for last, step in enumerate(trail):
        totals = step.totals.tolist()
        for row, place in step.is_found.nonzero().tolist():
            words, said, here = [], [], place
            for number in range(last, -1, -1):
                words.append(on_host[number]["words"][row][here])
                said.append(on_host[number]["said"][row][here])
                beam = on_host[number]["parents"][row][here]
                here = on_host[number - 1]["kept"][row][beam]
            value = totals[row][place] / len(words) ** config.length_penalty
            found[row].append(
                Hypothesis(tuple(words[::-1]), totals[row][place], tuple(said[::-1]), value)
            )
    # The first of equals wins, so that one beam is greedy search.
    return [sorted(ended, key=lambda hypothesis: -hypothesis.value) for ended in found]
