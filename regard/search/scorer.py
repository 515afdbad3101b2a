"""Scorers of next tokens: the interface between search and models."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.core.native.kernels import log_softmax
from regard.models.interfaces import Memory, State
from regard.models.language_model import LanguageModel
from regard.models.seq2seq import EncoderDecoder


class Scorer(Protocol):
    """Log-probabilities of the next token for each hypothesis of each sentence."""

    batch: int
    """Number of sentences."""
    device: torch.device
    """Device of the tensors."""

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token.

        Args:
            beams: Hypotheses per sentence.
            max_length: Maximum number of steps, if known, to allocate caches.
        """
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one token per hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        ...


def can_drop_sentences(scorer: Scorer) -> bool:
    """Return whether search may go on with a part of the sentences.

    It may if all tensors per sentence are in the state: the attribute `has_whole_state` of the
    scorer is then true.
    """
    return bool(getattr(scorer, "has_whole_state", False))


class ModelScorer:
    """Scorer of an encoder–decoder or a language model for one batch.

    Args:
        model: The model, in eval mode.
        source: The memory of the sources; for a language model, the number of texts.
        banned: Tokens that are never generated, such as padding and the start token. The others are
            not renormalised, so log-probabilities are those of the model.
    """

    has_whole_state = True

    def __init__(
        self,
        model: EncoderDecoder | LanguageModel,
        source: Memory | int,
        *,
        banned: tuple[int, ...],
    ) -> None:
        self.source = source
        self.banned = banned
        self.batch = len(source.states) if isinstance(source, Memory) else source
        self.device = next(model.parameters()).device
        self._model = model
        self._banned = torch.tensor(banned, dtype=torch.long, device=self.device)

    @property
    def step_graphs(self) -> Any:
        """The `StepGraphs` of a model that is prepared for them, or None."""
        return getattr(self._model, "step_graphs", None)

    def with_source(self, memory: Memory) -> "ModelScorer":
        """Return the scorer of other sources."""
        return ModelScorer(self._model, memory, banned=self.banned)

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        start: Callable[..., State] = self._model.start
        return start(self.source, beams=beams, max_length=max_length)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one token per hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        log_probs, state = self.process(tokens[:, None], state)
        return log_probs[:, -1], state

    def process(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T) in one pass and return log-probabilities (B·W, T, V)."""
        logits, state = self._model.step(tokens, state)
        found = log_softmax(logits, self._banned)
        if found is not None:
            return found, state
        log_probs = logits.log_softmax(-1, dtype=torch.float32)  # (B·W, T, V)
        return log_probs.index_fill_(-1, self._banned, -torch.inf), state
