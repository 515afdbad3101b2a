"""Connectionist temporal classification: each state of the encoder says a token, or nothing."""

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
    """The decoder alone says what is written."""

    kind: Literal["none"] = "none"
    """Whether the encoder's states say tokens by themselves."""


@dataclass(frozen=True, kw_only=True)
class CtcHeadConfig(Config):
    """The encoder's states learn to say the target by themselves, in its order."""

    kind: Literal["head"] = "head"
    """Whether the encoder's states say tokens by themselves."""
    weight: UnitInterval = 0.3
    """Share of this in the loss, the rest being the decoder's; 1 = the decoder learns nothing, and
    `search.ctc_weight` must be 1, too."""


CtcConfig = NoCtcConfig | CtcHeadConfig


class CtcHead(Module):
    """One linear layer from states to tokens and the blank, which is the last class."""

    def __init__(self, memory_dim: int, vocab_size: int) -> None:
        super().__init__()
        self.output = Linear(memory_dim, vocab_size + 1)

    def forward(self, memory: Memory) -> Emissions:
        """Say what each state of a memory stands for."""
        logits = at_least_float32(self.output(memory.states))  # (B, S, V + 1)
        return Emissions(logits.log_softmax(-1), memory.mask.sum(1))


def labelling_loss(emissions: Emissions, labels: Tensor, lengths: Tensor) -> Tensor:
    """Return −log p of each labelling, summed over all its alignments (Graves et al. 2006, eq. 8).

    Args:
        emissions: What the states say.
        labels: (B, T), tokens without start and end.
        lengths: (B,), how many of them are real.

    Returns:
        (B,); 0 where there are too few positions for the labels, since nothing can be learned.
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


def num_needed(labels: list[int]) -> int:
    """Return how many positions a labelling takes at least: equal neighbours need a blank."""
    return len(labels) + sum(a == b for a, b in zip(labels, labels[1:], strict=False))


def align(log_probs: Tensor, labels: list[int]) -> list[int]:
    """Find the likeliest alignment of a labelling (Viterbi).

    Args:
        log_probs: (S, V + 1) of one source, without padding; the last class is the blank.
        labels: Tokens without start and end.

    Returns:
        For each position the number of the label it says, or -1 for none.
    """
    blank = log_probs.shape[1] - 1
    if len(log_probs) < num_needed(labels):
        raise DataError(
            f"The source must have at least {num_needed(labels)} positions to be aligned with "
            f"{len(labels)} labels, but has {len(log_probs)}. Give a shorter target."
        )
    if not labels:
        return [-1] * len(log_probs)
    # A blank before, between and after the labels; it may be passed over between unequal ones.
    states = torch.full((2 * len(labels) + 1,), blank)
    states[1::2] = torch.tensor(labels, dtype=torch.long)
    may_skip = pad(states[2:] != states[:-2], (2, 0)) & (states != blank)
    said = log_probs.cpu()[:, states]
    totals = torch.full((len(states),), -torch.inf, dtype=said.dtype)
    totals[:2] = said[0, :2]
    steps = []
    for now in said[1:]:
        once, twice = (pad(totals, (num, 0), value=-torch.inf)[: len(totals)] for num in (1, 2))
        best, step = torch.stack([totals, once, twice.where(may_skip, -torch.inf)]).max(0)
        totals = best + now
        steps.append(step)
    here = max(range(len(states))[-2:], key=lambda place: float(totals[place]))
    path = [here]
    for step in reversed(steps):
        here -= int(step[here])
        path.append(here)
    return [place // 2 if place % 2 else -1 for place in reversed(path)]
