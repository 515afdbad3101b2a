"""Most likely tokens at each position of given targets, by forced decoding."""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from regard.models.interfaces import State
from regard.search.scorer import ModelScorer, Scorer

MAX_TOKENS = 1024
"""Maximum number of positions that are computed at once, each with a distribution."""

Alternatives: TypeAlias = list[list[tuple[int, float]]]
"""Tokens and their log-probabilities at each position of a target, most likely first."""


def find_alternatives(
    scorer: Scorer, targets: Sequence[Sequence[Sequence[int]]], *, start: int, num: int
) -> list[list[Alternatives]]:
    """Return the most likely tokens at each position of the targets of each sentence.

    A model scores all positions at once; other scorers, such as CTC, one after another. Tokens that
    are never generated are left out.

    Args:
        scorer: Scorer of next tokens.
        targets: Token ids of any number of targets per sentence, without the start token.
        start: The start token.
        num: Number of tokens per position.
    """
    beams = max(map(len, targets), default=0)
    filled = [[*group, *[()] * (beams - len(group))] for group in targets]
    rows = [tokens for group in filled for tokens in group]
    longest = max(map(len, rows), default=0)
    if not longest:
        return [[[] for _ in group] for group in targets]
    # Padding after the end is arbitrary: its log-probabilities are dropped.
    padded = [[start, *tokens, *[0] * (longest - len(tokens))][:longest] for tokens in rows]
    inputs = torch.tensor(padded, device=scorer.device)  # (B·W, T)
    values, indices = (part.tolist() for part in _best_tokens(scorer, inputs, beams=beams, num=num))
    found = iter(
        [
            [(token, value) for token, value in zip(*pair, strict=True) if value > -torch.inf]
            for pair in zip(indices[row][: len(tokens)], values[row][: len(tokens)], strict=True)
        ]
        for row, tokens in enumerate(rows)
    )
    return [[next(found) for _ in range(beams)][: len(group)] for group in targets]


def _best_tokens(scorer: Scorer, inputs: Tensor, *, beams: int, num: int) -> tuple[Tensor, Tensor]:
    """Return the largest log-probabilities at each position and their tokens, (B·W, T, num)."""
    state, values, indices = scorer.start(beams, inputs.shape[1]), [], []
    size = max(1, MAX_TOKENS // len(inputs)) if isinstance(scorer, ModelScorer) else 1
    for tokens in torch.split(inputs, size, dim=1):
        log_probs, state = _process(scorer, tokens, state)
        best = log_probs.topk(min(num, log_probs.shape[-1]), dim=-1)
        values.append(best.values)
        indices.append(best.indices)
    return torch.cat(values, dim=1), torch.cat(indices, dim=1)


def _process(scorer: Scorer, tokens: Tensor, state: State) -> tuple[Tensor, State]:
    """Process tokens (B·W, T) and return log-probabilities (B·W, T, V)."""
    if isinstance(scorer, ModelScorer):
        return scorer.process(tokens, state)
    log_probs, state = scorer.step(tokens[:, 0], state)
    return log_probs[:, None], state
