"""Ensemble of encoder–decoders: the mean of their probabilities."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.core.module import ModuleList
from regard.models.interfaces import Decoder, Encoder, Memory, State, join_states, split_state
from regard.models.seq2seq import EncoderDecoder


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleMemory(Memory):
    """Memories of all members; the other fields are those of the first member."""

    members: tuple[Memory, ...]
    """Memory of each member."""


class EnsembleEncoder(Encoder):
    """Encoders of all members."""

    def __init__(self, members: Sequence[Encoder]) -> None:
        super().__init__()
        self.members: ModuleList[Encoder] = ModuleList(members)

    def forward(self, values: Tensor, mask: Tensor) -> EnsembleMemory:
        """Encode the source (B, S) with each encoder."""
        memories = tuple(member(values, mask) for member in self.members)
        first = memories[0]
        return EnsembleMemory(first.states, first.mask, first.summary, members=memories)

    def memory_positions(self, values: Tensor, mask: Tensor) -> Tensor | None:
        """Map each source position (B, S) to its position in the first memory."""
        return next(iter(self.members)).memory_positions(values, mask)


class EnsembleDecoder(Decoder):
    """Decoders of all members, each with its own memory.

    The returned logits are log-probabilities, so a softmax does not change them.
    """

    def __init__(self, members: Sequence[Decoder]) -> None:
        super().__init__()
        self.members: ModuleList[Decoder] = ModuleList(members)

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        assert isinstance(memory, EnsembleMemory)
        starts = [
            member.start(member_memory, beams=beams, max_length=max_length)
            for member, member_memory in zip(self.members, memory.members, strict=True)
        ]
        return join_states(starts)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return log-probabilities (B·W, T, V) and the next state."""
        pairs = zip(self.members, split_state(state), strict=True)
        logits, states = zip(*[member.step(tokens, part) for member, part in pairs], strict=True)
        return mean_log_probs(logits), join_states(states)


class Ensemble(EncoderDecoder):
    """Ensemble of trained models with the interface of a single model.

    Sutskever et al. 2014, section 3.6. Members may have different architectures but must share the
    vocabularies. Members are trained separately.

    Args:
        models: The members, in eval mode.
    """

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        sizes = sorted({model.decoder.output.out_features for model in models})
        if len(sizes) != 1:
            raise ConfigError(
                "`models` must be one or more with one target vocabulary, but there are "
                f"{len(models)}, with vocabularies of {sizes} tokens."
            )
        super().__init__(
            EnsembleEncoder([model.encoder for model in models]),
            EnsembleDecoder([model.decoder for model in models]),
        )


def mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """Return the log of the mean distribution (..., V), given the logits of each distribution."""
    log_probs = torch.stack([member.float().log_softmax(-1) for member in logits])
    return log_probs.logsumexp(0) - math.log(len(logits))
