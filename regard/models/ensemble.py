"""Several encoder–decoders that write one target together: the mean of their probabilities."""

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
    """What several encoders made of one source; all but `members` is the first one's."""

    members: tuple[Memory, ...]
    """The memory of each."""


class EnsembleEncoder(Encoder):
    """Reads a source with several encoders."""

    def __init__(self, members: Sequence[Encoder]) -> None:
        super().__init__()
        self.members: ModuleList[Encoder] = ModuleList(members)

    def forward(self, values: Tensor, mask: Tensor) -> EnsembleMemory:
        """Read the whole source (B, S) with each encoder."""
        memories = tuple(member(values, mask) for member in self.members)
        first = memories[0]
        return EnsembleMemory(first.states, first.mask, first.summary, members=memories)

    def groups(self, values: Tensor, mask: Tensor) -> Tensor | None:
        """Return the position of the first memory that each source position (B, S) went into."""
        return next(iter(self.members)).groups(values, mask)


class EnsembleDecoder(Decoder):
    """Continues a target with several decoders, each at its own memory.

    What it returns as logits are log-probabilities already: a softmax leaves them as they are.
    """

    def __init__(self, members: Sequence[Decoder]) -> None:
        super().__init__()
        self.members: ModuleList[Decoder] = ModuleList(members)

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a sentence."""
        assert isinstance(memory, EnsembleMemory)
        starts = [
            member.start(own, beams=beams, max_length=max_length)
            for member, own in zip(self.members, memory.members, strict=True)
        ]
        return join_states(starts)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return log-probabilities (B·W, T, V) and the next state."""
        pairs = zip(self.members, split_state(state), strict=True)
        logits, after = zip(*[member.step(tokens, own) for member, own in pairs], strict=True)
        return mean_log_probs(logits), join_states(after)


class Ensemble(EncoderDecoder):
    """Several models as one, to be searched, forced and recorded like any other.

    Sutskever et al. 2014, section 3.6. Members may be of different kinds; what they share is the
    vocabularies. It is for answering: its members learn each on its own.

    Args:
        models: The members, in evaluation mode.
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
    """Return the log of the mean of several distributions (..., V), given by their logits."""
    log_probs = torch.stack([one.float().log_softmax(-1) for one in logits])
    return log_probs.logsumexp(0) - math.log(len(logits))
