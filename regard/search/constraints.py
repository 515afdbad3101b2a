"""Rules about what may be written next, around anything that gives log-probabilities.

A rule forbids tokens (their log-probability becomes minus infinity; the others keep the model's
own numbers, for the forbidden share is not given to them) or, as the repetition penalty does,
changes numbers. What applies to sampling alone is in `sampling`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.interfaces import State
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig

Rule: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Log-probabilities (B·W, V) of the next token, and all tokens (B·W, T) written after the start
token → new log-probabilities; those given stay as they are."""


def force_prefix(
    log_probs: Tensor, written: Tensor, *, prefixes: Tensor, lengths: Tensor
) -> Tensor:
    """Forbid all but the next token of a prefix that has not been written to its end.

    Args:
        log_probs: (B·W, V).
        written: (B·W, T).
        prefixes: (B, T) token ids each sentence begins with, padded at the end with anything.
        lengths: (B,) how many of them are given.
    """
    position = written.shape[1]
    if position >= prefixes.shape[1]:
        return log_probs
    beams = len(log_probs) // len(prefixes)
    given = prefixes[:, position].repeat_interleave(beams)  # (B·W,)
    is_given = (position < lengths).repeat_interleave(beams)
    others = torch.arange(log_probs.shape[1], device=log_probs.device) != given[:, None]
    return log_probs.masked_fill(is_given[:, None] & others, -torch.inf)


def forbid_repeats(log_probs: Tensor, written: Tensor, *, length: int) -> Tensor:
    """Forbid n-grams of this length that occurred before (Paulus et al. 2018, section 2.5)."""
    if written.shape[1] < length:
        return log_probs
    grams = written.unfold(1, length, 1)  # (B·W, L, Q), the last axis the n tokens
    latest = written[:, written.shape[1] - length + 1 :]  # (B·W, Q), n - 1 of them
    is_same = (grams[..., :-1] == latest[:, None]).all(-1)  # (B·W, L)
    return log_probs.masked_fill(_mark(grams[..., -1], is_same, log_probs), -torch.inf)


def forbid_end(log_probs: Tensor, written: Tensor, *, end: int, min_length: int) -> Tensor:
    """Forbid the end token in a target of fewer tokens than `min_length`."""
    if written.shape[1] >= min_length:
        return log_probs
    tokens = torch.arange(log_probs.shape[1], device=log_probs.device)
    return log_probs.masked_fill(tokens == end, -torch.inf)


def penalise_repetition(log_probs: Tensor, written: Tensor, *, penalty: float) -> Tensor:
    """Multiply the log-probability of every token that was written (Keskar et al. 2019, 4.1).

    The paper divides logits, which makes a negative one likelier. Log-probabilities are never
    positive, so multiplying them always does what is meant.
    """
    is_written = _mark(written, torch.ones_like(written, dtype=torch.bool), log_probs)
    return torch.where(is_written, log_probs * penalty, log_probs)


def _mark(tokens: Tensor, is_meant: Tensor, log_probs: Tensor) -> Tensor:
    """Return (B·W, V), True for the tokens (B·W, L) that are meant."""
    rows, vocab = log_probs.shape
    # One column more takes what is not meant, so that it cannot undo what is.
    marks = torch.zeros(rows, vocab + 1, dtype=torch.bool, device=log_probs.device)
    return marks.scatter_(1, tokens.masked_fill(~is_meant, vocab), True)[:, :vocab]  # (B·W, V)


class RuledScorer:
    """A scorer whose answers obey rules; what has been written is part of the state per hypothesis.

    A rule that would leave a hypothesis nothing to write gives way, so that a hypothesis never
    becomes impossible, and a rule can undo no rule before it.
    """

    def __init__(self, scorer: Scorer, rules: Sequence[Rule]) -> None:
        self.scorer = scorer
        self.rules = rules
        self.batch = scorer.batch
        self.device = scorer.device

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a sentence."""
        state = self.scorer.start(beams, max_length)
        nothing = torch.zeros(self.batch * beams, 0, dtype=torch.long, device=self.device)
        return State(state.per_source, {"scorer": state.per_hypothesis, "read": nothing})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        log_probs, inner = self.scorer.step(
            tokens, State(state.per_source, state.per_hypothesis["scorer"])
        )
        read = torch.cat([state.per_hypothesis["read"], tokens[:, None]], dim=1)  # (B·W, T)
        for rule in self.rules:
            changed = rule(log_probs, read[:, 1:])  # The start token was read, not written.
            is_stuck = (changed == -torch.inf).all(1, keepdim=True)
            log_probs = torch.where(is_stuck, log_probs, changed)
        return log_probs, State(inner.per_source, {"scorer": inner.per_hypothesis, "read": read})


def build_rules(
    config: SearchConfig,
    *,
    end: int,
    max_lengths: Tensor,
    prefixes: Sequence[Sequence[int]] | None,
    device: torch.device,
) -> list[Rule]:
    """Return the rules that the settings ask for; the earlier one wins where two disagree.

    Args:
        config: The settings.
        end: The end token.
        max_lengths: (B,) most tokens of each sentence, those of its prefix included.
        prefixes: The tokens each sentence begins with, if any are given.
        device: Where the log-probabilities lie.
    """
    rules: list[Rule] = []
    if prefixes is not None and any(prefixes):
        _check_prefixes(prefixes, end=end, limits=max_lengths.tolist())
        lengths = [len(prefix) for prefix in prefixes]
        padded = [[*prefix, *[end] * (max(lengths) - len(prefix))] for prefix in prefixes]
        given, nums = (torch.tensor(numbers, device=device) for numbers in (padded, lengths))
        rules.append(partial(force_prefix, prefixes=given, lengths=nums))
    if config.no_repeat_ngram:
        rules.append(partial(forbid_repeats, length=config.no_repeat_ngram))
    if config.min_length:
        rules.append(partial(forbid_end, end=end, min_length=config.min_length))
    if config.repetition_penalty != 1.0:
        rules.append(partial(penalise_repetition, penalty=config.repetition_penalty))
    return rules


def _check_prefixes(prefixes: Sequence[Sequence[int]], *, end: int, limits: Sequence[int]) -> None:
    for prefix, limit in zip(prefixes, limits, strict=True):
        if len(prefix) > limit:
            raise ConfigError(
                f"`prefix` must fit into the longest target allowed ({limit} tokens), but has "
                f"{len(prefix)} tokens. Shorten it, or allow longer targets."
            )
        if end in prefix:
            raise ConfigError(
                f"`prefix` must not hold the end token ({end}), but is {list(prefix)}."
            )
