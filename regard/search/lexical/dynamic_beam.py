"""Beam search for targets that must contain phrases: dynamic beam allocation.

Post and Vilar 2018, with all sentences and hypotheses of a batch at once (Hu et al. 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.interfaces import reorder
from regard.search.greedy import should_check
from regard.search.hypothesis import Hypothesis
from regard.search.length_penalty import length_scale
from regard.search.lexical.constraints import LexicalScorer, check_lengths
from regard.search.lexical.required import Progress, RequiredPhrases
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig
from regard.search.stopping import Stopping
from regard.search.tree import current_recorder

MAX_ADDED = 20
"""Maximum number of beams that are added for required phrases."""


def dynamic_beam_search(
    scorer: Scorer,
    lexical: LexicalScorer,
    *,
    start: int,
    end: int,
    max_lengths: Tensor,
    config: SearchConfig,
    num_best: int = 1,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence with required phrases; of others, none.

    Hypotheses are grouped by the number of tokens of required phrases that they contain, and each
    group gets an equal share of the beam. At each step, candidates are the most likely
    continuations, and the next token of every required phrase. So the target contains all phrases
    whenever the maximum length allows. Otherwise, hypotheses with more phrases are better.

    By default, the search of a sentence ends when `config.beams` of its hypotheses with all phrases
    have ended and no active one with all phrases is better than the best of them.

    A sentence with N tokens in required phrases has at least N + 1 beams (but at most `MAX_ADDED`
    more than `config.beams`). Its result does not depend on the other sentences of the batch.

    Args:
        scorer: Scorer of next tokens, with all other constraints.
        lexical: The required phrases.
        start: The start token.
        end: The end token.
        max_lengths: (B,) maximum number of tokens of each sentence.
        config: Number of beams, length penalty and rule of stopping.
        num_best: Number of hypotheses to return per sentence.
    """
    constraints = lexical.constraints
    check_required_search(config)
    if num_best > config.beams:
        raise ConfigError(
            f"`nbest` must be at most the number of beams ({config.beams}), but is {num_best}. "
            "Ask for more beams."
        )
    if current_recorder():
        raise ConfigError(
            "A beam tree must be of a search without required phrases (of a glossary, or kept "
            "parts of the source), but the source has some. Leave one of them out."
        )
    check_lengths(constraints, max_lengths.tolist())
    has_phrases = torch.tensor([bool(one.required) for one in constraints], device=scorer.device)
    phrases = RequiredPhrases(constraints, lexical.vocabulary, start=start)
    limits = max_lengths.to(scorer.device).masked_fill(~has_phrases, 0)  # (B,)
    widths = (phrases.totals + 1).clamp(config.beams, config.beams + MAX_ADDED)  # (B,)
    beams, num_steps = int(widths.max()), int(limits.max())
    state = scorer.start(beams, num_steps)
    beam = _Beam.start(phrases, beams, token=start, is_active=has_phrases)
    hypotheses: list[list[tuple[int, Hypothesis]]] = [[] for _ in constraints]
    stopping = Stopping.start(config, limits, num_best=num_best)
    for index in range(num_steps):
        log_probs, state = scorer.step(beam.last.flatten(), state)
        step = _Step.choose(
            beam, log_probs, phrases=phrases, widths=widths, end=end, is_last=limits <= index + 1
        )
        beam = step.extend(beam, phrases)
        scale = length_scale(float(index + 1), config)
        for row, number, found in beam.read(step.is_finished, scale):
            hypotheses[row].append((number, found))
        is_result = step.is_finished & phrases.is_met(beam.progress)
        results = beam.totals.masked_fill(~is_result, -torch.inf)
        beam, rows = beam.keep(step.is_end, widths, beams)
        complete = beam.totals.masked_fill(~phrases.is_met(beam.progress), -torch.inf)
        stopping, is_done = stopping.update(
            results, beam.totals, length=index + 1, complete=complete
        )
        is_done |= (beam.totals == -torch.inf).all(1)
        if should_check(index, scorer.device) and bool(is_done.all()):
            break
        beam = replace(beam, totals=beam.totals.masked_fill(is_done[:, None], -torch.inf))
        state = reorder(state, step.rows(rows, beams))
    return [_rank(group)[:num_best] for group in hypotheses]


def check_required_search(config: SearchConfig) -> None:
    """Raise `ConfigError` if a search for required phrases lacks a setting.

    Args:
        config: The search settings.
    """
    for name, value, default, reason in (
        ("temperature", config.temperature, 0, ", since samples cannot be made to contain them"),
        ("consensus", config.consensus, 0, ", since it could select a target without them"),
        ("coverage_penalty", config.coverage_penalty, 0, ", since a target without them could win"),
        ("groups", config.groups, 1, ", since the beam is shared by number of required tokens"),
    ):
        if value != default:
            raise ConfigError(
                f"`search.{name}` must be {default} with required phrases (of a glossary, or kept "
                f"parts of the source){reason}, but is {value:g}. Leave one of them out."
            )


def _rank(found: Sequence[tuple[int, Hypothesis]]) -> list[Hypothesis]:
    """Return hypotheses with more phrases first, then those with the higher value."""
    return [one for _, one in sorted(found, key=lambda pair: (-pair[0], -pair[1].value))]


@dataclass(frozen=True)
class _Beam:
    """Hypotheses of each sentence, (B, W, ...)."""

    totals: Tensor
    """(B, W), log-probability; -inf = no hypothesis."""
    progress: Progress
    tokens: Tensor
    """(B, W, T), with the start token."""
    log_probs: Tensor
    """(B, W, T), log-probability of each token."""

    @classmethod
    def start(
        cls, phrases: RequiredPhrases, beams: int, *, token: int, is_active: Tensor
    ) -> "_Beam":
        # One hypothesis: equal beams would give equal results.
        totals = torch.full((len(is_active), beams), -torch.inf, device=is_active.device)
        totals[:, 0] = totals[:, 0].masked_fill(is_active, 0.0)
        tokens = torch.full((*totals.shape, 1), token, device=is_active.device)
        return cls(totals, phrases.start(beams), tokens, torch.zeros_like(totals)[..., None])

    @property
    def last(self) -> Tensor:
        """The last token of each hypothesis, (B, W)."""
        return self.tokens[..., -1]

    def keep(self, is_end: Tensor, widths: Tensor, beams: int) -> tuple["_Beam", Tensor]:
        """Return the first active hypotheses, and their indices, (B, W)."""
        # A stable sort by `is_end` puts active hypotheses first and keeps their order.
        kept = is_end.int().argsort(dim=1, stable=True)[:, :beams]
        is_beyond = torch.arange(kept.shape[1], device=kept.device) >= widths[:, None]
        is_dropped = is_end.gather(1, kept) | is_beyond
        rows = torch.arange(len(kept), device=kept.device)[:, None]
        totals = self.totals.gather(1, kept).masked_fill(is_dropped, -torch.inf)
        parts = (part[rows, kept] for part in (self.tokens, self.log_probs))
        return _Beam(totals, self.progress.select(kept), *parts), kept

    def read(self, is_finished: Tensor, scale: float) -> list[tuple[int, int, Hypothesis]]:
        """Return finished hypotheses: sentence, number of required occurrences, hypothesis."""
        if not bool(is_finished.any()):
            return []
        rows = is_finished.nonzero()[:, 0].tolist()
        totals = self.totals[is_finished].tolist()
        tokens, log_probs = (
            part[is_finished][:, 1:].tolist() for part in (self.tokens, self.log_probs)
        )
        numbers = self.progress.counts[is_finished].sum(1).tolist()
        return [
            (row, number, Hypothesis(tuple(ids), total, tuple(steps), total / scale))
            for row, number, ids, steps, total in zip(
                rows, numbers, tokens, log_probs, totals, strict=True
            )
        ]


@dataclass(frozen=True)
class _Step:
    """Continuations of the hypotheses of each sentence at one step, in the order of allocation."""

    totals: Tensor  # (B, K) log-probability of the hypothesis
    log_probs: Tensor  # (B, K) log-probability of its last token
    tokens: Tensor  # (B, K) its last token
    parents: Tensor  # (B, K) the beam it continues
    is_end: Tensor  # (B, K) whether it has ended
    is_finished: Tensor  # (B, K) whether it has ended and is a result

    @classmethod
    def choose(
        cls,
        beam: _Beam,
        log_probs: Tensor,
        *,
        phrases: RequiredPhrases,
        widths: Tensor,
        end: int,
        is_last: Tensor,
    ) -> "_Step":
        """Select the continuations that share the beam.

        Args:
            beam: The hypotheses.
            log_probs: (B·W, V) log-probabilities of the next token.
            phrases: The required phrases.
            widths: (B,) number of beams of each sentence.
            end: The end token.
            is_last: (B,) whether the sentence reaches its maximum length with this token.
        """
        batch, beams = beam.totals.shape
        vocab = log_probs.shape[-1]
        given = _forbid(log_probs.view(batch, beams, vocab), beam, phrases, end=end)
        indices = _candidates(given, beam, phrases=phrases, widths=widths)
        is_valid = indices < beams * vocab
        indices = indices.where(is_valid, 0)
        steps = given.flatten(1).gather(1, indices)
        totals = beam.totals.gather(1, indices // vocab) + steps
        totals = totals.masked_fill(~is_valid, -torch.inf)  # (B, K)
        extended = phrases.advance(beam.progress.select(indices // vocab), indices % vocab)
        order = _allocate(totals, phrases.num_tokens(extended))[:, : 2 * beams]
        totals, indices = totals.gather(1, order), indices.gather(1, order)
        tokens = indices % vocab
        is_end = (tokens == end) | is_last[:, None] | (totals == -torch.inf)
        is_first = torch.arange(order.shape[1], device=order.device) < widths[:, None]
        return cls(
            totals=totals,
            log_probs=steps.gather(1, order),
            tokens=tokens,
            parents=indices // vocab,
            is_end=is_end,
            is_finished=is_end & is_first & totals.isfinite(),
        )

    def extend(self, beam: _Beam, phrases: RequiredPhrases) -> _Beam:
        """Return the hypotheses with their new tokens, (B, K, ...)."""
        rows = torch.arange(len(self.parents), device=self.parents.device)[:, None]
        return _Beam(
            self.totals,
            phrases.advance(beam.progress.select(self.parents), self.tokens),
            torch.cat([beam.tokens[rows, self.parents], self.tokens[..., None]], 2),
            torch.cat([beam.log_probs[rows, self.parents], self.log_probs[..., None]], 2),
        )

    def rows(self, kept: Tensor, beams: int) -> Tensor:
        """Return the row of the state that each kept continuation continues, (B·W,)."""
        first = torch.arange(len(kept), device=kept.device)[:, None] * beams
        return (self.parents.gather(1, kept) + first).flatten()


def _forbid(log_probs: Tensor, beam: _Beam, phrases: RequiredPhrases, *, end: int) -> Tensor:
    """Forbid the end before all phrases are met, and longer words after a phrase.

    If all tokens of a hypothesis would be forbidden, none is.
    """
    changed = log_probs.clone()
    is_unmet = ~phrases.is_met(beam.progress)  # (B, W)
    changed[..., end] = changed[..., end].masked_fill(is_unmet, -torch.inf)
    # Few hypotheses have just completed a phrase: the others are not masked.
    is_inside = phrases.is_inside_word(beam.progress, beam.last)
    changed[is_inside] = changed[is_inside].masked_fill(~phrases.vocabulary.begins, -torch.inf)
    is_stuck = changed.amax(2) == -torch.inf
    changed[is_stuck] = log_probs[is_stuck]
    return changed


def _candidates(
    log_probs: Tensor, beam: _Beam, *, phrases: RequiredPhrases, widths: Tensor
) -> Tensor:
    """Return the indices of candidates, (B, K), each once; beyond the last index are none.

    They are the 2W most likely continuations (even if W of them end, W are left to continue), the
    most likely continuation of each hypothesis, and the next token of each phrase.
    """
    beams, vocab = log_probs.shape[1:]
    first = torch.arange(beams, device=log_probs.device)[:, None] * vocab  # (W, 1)
    values, tokens = log_probs.topk(min(2 * beams, vocab), dim=2)  # (B, W, K)
    tokens = tokens + first
    sums = (beam.totals[..., None] + values).flatten(1)
    likeliest = tokens.flatten(1).gather(1, sums.topk(min(2 * beams, sums.shape[1]), 1).indices)
    rank = torch.arange(likeliest.shape[1], device=sums.device)
    likeliest = likeliest.masked_fill(rank >= 2 * widths[:, None], beams * vocab)
    following, is_open = phrases.next_tokens(beam.progress)  # (B, W, N)
    required = (following + first).masked_fill(~is_open, beams * vocab).flatten(1)
    indices = torch.cat([likeliest, tokens[..., 0], required], 1).sort(1).values
    is_repeated = indices == indices.roll(1, 1)
    is_repeated[:, 0] = False
    return indices.masked_fill(is_repeated, beams * vocab)


def _allocate(totals: Tensor, num_tokens: Tensor) -> Tensor:
    """Order candidates so that groups take turns: the best of each group, the second best, ….

    Groups with more tokens of required phrases are first.

    Args:
        totals: (B, K), log-probabilities; -inf = none, put last.
        num_tokens: (B, K), the group of each candidate.
    """
    by_total = totals.argsort(dim=1, descending=True, stable=True)
    groups = num_tokens.masked_fill(totals == -torch.inf, -1).gather(1, by_total)
    by_group = groups.argsort(dim=1, stable=True)
    sorted_groups = groups.gather(1, by_group)
    position = torch.arange(groups.shape[1], device=groups.device).expand_as(groups)
    is_first = torch.ones_like(groups, dtype=torch.bool)
    is_first[:, 1:] = sorted_groups[:, 1:] != sorted_groups[:, :-1]
    first = position.where(is_first, 0).cummax(1).values
    rank = torch.zeros_like(groups).scatter(1, by_group, position - first)
    num_groups = int(num_tokens.max()) + 2
    last = num_groups * (groups.shape[1] + 1)
    key = (rank * num_groups - groups).masked_fill(groups < 0, last)
    return by_total.gather(1, key.argsort(dim=1, stable=True))
