"""Constraints on the next token: prefixes, repeated n-grams, minimum length, repetition penalty.

A constraint sets the log-probability of forbidden tokens to -inf, without renormalising the others,
or, like the repetition penalty, changes log-probabilities. Filters for sampling are in `sampling`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.interfaces import State
from regard.search.scorer import Scorer, can_drop_sentences
from regard.search.settings import SearchConfig

Constraint: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Function of the log-probabilities (B·W, V) of the next token and the generated tokens (B·W, T)
without the start token. It returns new log-probabilities and does not modify its arguments."""


def force_prefix(
    log_probs: Tensor, generated: Tensor, *, prefixes: Tensor, lengths: Tensor
) -> Tensor:
    """Forbid all tokens but the next one of a prefix that is not complete yet.

    Args:
        log_probs: (B·W, V).
        generated: (B·W, T).
        prefixes: (B, T) token ids of each prefix, with arbitrary padding at the end.
        lengths: (B,) number of tokens of each prefix.
    """
    position = generated.shape[1]
    if position >= prefixes.shape[1]:
        return log_probs
    beams = len(log_probs) // len(prefixes)
    given = prefixes[:, position].repeat_interleave(beams)  # (B·W,)
    is_given = (position < lengths).repeat_interleave(beams)
    others = torch.arange(log_probs.shape[1], device=log_probs.device) != given[:, None]
    return log_probs.masked_fill(is_given[:, None] & others, -torch.inf)


def forbid_repeats(log_probs: Tensor, generated: Tensor, *, length: int) -> Tensor:
    """Forbid n-grams of this length that occurred before (Paulus et al. 2018, section 2.5)."""
    if generated.shape[1] < length:
        return log_probs
    grams = generated.unfold(1, length, 1)  # (B·W, L, Q), the last axis the n tokens
    latest = generated[:, generated.shape[1] - length + 1 :]  # (B·W, Q), n - 1 of them
    is_same = (grams[..., :-1] == latest[:, None]).all(-1)  # (B·W, L)
    return log_probs.masked_fill(_mark(grams[..., -1], is_same, log_probs), -torch.inf)


def forbid_end(log_probs: Tensor, generated: Tensor, *, end: int, min_length: int) -> Tensor:
    """Forbid the end token in targets shorter than `min_length` tokens."""
    if generated.shape[1] >= min_length:
        return log_probs
    tokens = torch.arange(log_probs.shape[1], device=log_probs.device)
    return log_probs.masked_fill(tokens == end, -torch.inf)


def penalize_repetition(log_probs: Tensor, generated: Tensor, *, penalty: float) -> Tensor:
    """Multiply the log-probability of all generated tokens (Keskar et al. 2019, section 4.1).

    The paper divides logits, which increases negative ones. Log-probabilities are never positive,
    so multiplication always decreases them.
    """
    is_generated = _mark(generated, torch.ones_like(generated, dtype=torch.bool), log_probs)
    return torch.where(is_generated, log_probs * penalty, log_probs)


def _mark(tokens: Tensor, is_selected: Tensor, log_probs: Tensor) -> Tensor:
    """Return a mask (B·W, V), True for the selected tokens (B·W, L)."""
    rows, vocab = log_probs.shape
    # An additional column receives the tokens that are not selected.
    marks = torch.zeros(rows, vocab + 1, dtype=torch.bool, device=log_probs.device)
    return marks.scatter_(1, tokens.masked_fill(~is_selected, vocab), True)[:, :vocab]  # (B·W, V)


class ConstrainedScorer:
    """Scorer with constraints. The generated tokens are part of the state per hypothesis.

    A constraint that would forbid all remaining tokens of a hypothesis is ignored at that step.
    """

    def __init__(self, scorer: Scorer, constraints: Sequence[Constraint]) -> None:
        self.scorer = scorer
        self.constraints = constraints
        self.batch = scorer.batch
        self.device = scorer.device
        # Prefixes are tensors per sentence outside of the state.
        has_prefixes = any(getattr(one, "func", None) is force_prefix for one in constraints)
        self.has_whole_state = can_drop_sentences(scorer) and not has_prefixes

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        state = self.scorer.start(beams, max_length)
        tokens = torch.zeros(self.batch * beams, 0, dtype=torch.long, device=self.device)
        return State(state.per_source, {"scorer": state.per_hypothesis, "tokens": tokens})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one token per hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        log_probs, inner = self.scorer.step(
            tokens, State(state.per_source, state.per_hypothesis["scorer"])
        )
        tokens = torch.cat([state.per_hypothesis["tokens"], tokens[:, None]], dim=1)  # (B·W, T)
        for constraint in self.constraints:
            changed = constraint(log_probs, tokens[:, 1:])  # without the start token
            is_stuck = (changed == -torch.inf).all(1, keepdim=True)
            log_probs = torch.where(is_stuck, log_probs, changed)
        return log_probs, State(
            inner.per_source, {"scorer": inner.per_hypothesis, "tokens": tokens}
        )


def build_constraints(
    config: SearchConfig,
    *,
    end: int,
    max_lengths: Tensor,
    prefixes: Sequence[Sequence[int]] | None,
    device: torch.device,
) -> list[Constraint]:
    """Return the constraints of the settings; of two that conflict, the earlier one wins.

    Args:
        config: The settings.
        end: The end token.
        max_lengths: (B,) maximum number of tokens of each sentence, including its prefix.
        prefixes: Token ids of the prefix of each sentence.
        device: Device of the log-probabilities.
    """
    constraints: list[Constraint] = []
    if prefixes is not None and any(prefixes):
        _check_prefixes(prefixes, end=end, limits=max_lengths.tolist())
        lengths = [len(prefix) for prefix in prefixes]
        padded = [[*prefix, *[end] * (max(lengths) - len(prefix))] for prefix in prefixes]
        tokens, counts = (torch.tensor(values, device=device) for values in (padded, lengths))
        constraints.append(partial(force_prefix, prefixes=tokens, lengths=counts))
    if config.no_repeat_ngram:
        constraints.append(partial(forbid_repeats, length=config.no_repeat_ngram))
    if config.min_length:
        constraints.append(partial(forbid_end, end=end, min_length=config.min_length))
    if config.repetition_penalty != 1.0:
        constraints.append(partial(penalize_repetition, penalty=config.repetition_penalty))
    return constraints


def _check_prefixes(prefixes: Sequence[Sequence[int]], *, end: int, limits: Sequence[int]) -> None:
    for prefix, limit in zip(prefixes, limits, strict=True):
        if len(prefix) > limit:
            raise ConfigError(
                f"`prefix` must fit into the maximum target length ({limit} tokens), but has "
                f"{len(prefix)} tokens. Shorten it, or allow longer targets."
            )
        if end in prefix:
            raise ConfigError(
                f"`prefix` must not contain the end token ({end}), but is {list(prefix)}."
            )
