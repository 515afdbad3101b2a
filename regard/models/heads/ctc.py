"""Connectionist temporal classification (CTC): head, loss and alignment."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import ctc_loss, pad

from regard.attention.attend import at_least_float32
from regard.core.config import Config, UnitInterval
from regard.core.errors import DataError
from regard.core.module import Linear, Module
from regard.models.interfaces import Emissions, Memory


@dataclass(frozen=True, kw_only=True)
class NoCtcConfig(Config):
    """No CTC head."""

    kind: Literal["none"] = "none"
    """Kind of CTC head."""


@dataclass(frozen=True, kw_only=True)
class CtcHeadConfig(Config):
    """Hyperparameters of the CTC head."""

    kind: Literal["head"] = "head"
    """Kind of CTC head."""
    weight: UnitInterval = 0.3
    """Weight of the CTC loss; the decoder loss has the weight 1 - `weight`. With 1 the decoder is
    not trained, and `search.ctc_weight` must be 1, too."""


CtcConfig = NoCtcConfig | CtcHeadConfig


class CtcHead(Module):
    """Linear layer from states to tokens and the blank token, which is the last class."""

    def __init__(self, memory_dim: int, vocab_size: int) -> None:
        super().__init__()
        self.output = Linear(memory_dim, vocab_size + 1)

    def forward(self, memory: Memory) -> Emissions:
        """Return the log-probabilities of each state of a memory."""
        logits = at_least_float32(self.output(memory.states))  # (B, S, V + 1)
        return Emissions(logits.log_softmax(-1), memory.mask.sum(1))


def labelling_loss(emissions: Emissions, labels: Tensor, lengths: Tensor) -> Tensor:
    """Return −log p of each labelling, summed over all its alignments (Graves et al. 2006, eq. 8).

    Args:
        emissions: Output of the CTC head.
        labels: (B, T), tokens without start and end token.
        lengths: (B,), number of real labels.

    Returns:
        (B,); 0 if there are too few positions for the labels.
    """
    loss: Tensor = ctc_loss(
        emissions.log_probs.transpose(0, 1),
        labels,
        emissions.lengths,
        lengths,
        blank=emissions.blank,
        reduction="none",
        zero_infinity=True,
    )
    return loss


def min_positions(labels: list[int]) -> int:
    """Return the minimum number of positions: repeated labels need a blank token in between."""
    return len(labels) + sum(a == b for a, b in zip(labels, labels[1:], strict=False))


def align(log_probs: Tensor, labels: list[int]) -> list[int]:
    """Return the most likely alignment of a labelling (Viterbi).

    Args:
        log_probs: (S, V + 1) of one source, without padding; the last class is the blank token.
        labels: Tokens without start and end token.

    Returns:
        For each position the index of its label, or -1 for the blank token.
    """
    blank = log_probs.shape[1] - 1
    if len(log_probs) < min_positions(labels):
        raise DataError(
            f"The source must have at least {min_positions(labels)} positions to be aligned with "
            f"{len(labels)} labels, but has {len(log_probs)}. Give a shorter target."
        )
    if not labels:
        return [-1] * len(log_probs)
    # A blank token before, between and after the labels; optional between different labels.
    states = torch.full((2 * len(labels) + 1,), blank)
    states[1::2] = torch.tensor(labels, dtype=torch.long)
    may_skip = pad(states[2:] != states[:-2], (2, 0)) & (states != blank)
    emitted = log_probs.cpu()[:, states]
    totals = torch.full((len(states),), -torch.inf, dtype=emitted.dtype)
    totals[:2] = emitted[0, :2]
    steps = []
    for frame in emitted[1:]:
        once, twice = (pad(totals, (num, 0), value=-torch.inf)[: len(totals)] for num in (1, 2))
        best, step = torch.stack([totals, once, twice.where(may_skip, -torch.inf)]).max(0)
        totals = best + frame
        steps.append(step)
    current = max(range(len(states))[-2:], key=lambda state: float(totals[state]))
    path = [current]
    for step in reversed(steps):
        current -= int(step[current])
        path.append(current)
    return [state // 2 if state % 2 else -1 for state in reversed(path)]
