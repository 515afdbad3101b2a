"""What search asks: log-probabilities of the next token. A model is one answer to it."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from regard.models.interfaces import Memory, State
from regard.models.language_model import LanguageModel
from regard.models.seq2seq import EncoderDecoder


class Scorer(Protocol):
    """Gives log-probabilities of the next token for every hypothesis of every sentence."""

    batch: int
    """Number of sentences."""
    device: torch.device
    """Where the tensors lie."""

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token.

        Args:
            beams: Hypotheses a sentence.
            max_length: Most steps that will be taken, if that is known.
        """
        ...

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        ...


class ModelScorer:
    """An encoder–decoder over one batch of sentences, or a language model over so many texts.

    Args:
        model: The model, in evaluation mode.
        source: What its encoder made of the sentences; of a language model, the number of texts.
        banned: Tokens that may never be chosen, such as padding and the start token. Their
            share is not given to the others, so log-probabilities stay those of the model.
    """

    def __init__(
        self,
        model: EncoderDecoder | LanguageModel,
        source: Memory | int,
        *,
        banned: tuple[int, ...],
    ) -> None:
        start: Callable[..., State] = model.start
        self.batch = len(source.states) if isinstance(source, Memory) else source
        self.device = next(model.parameters()).device
        self._start = partial(start, source)
        self._step = model.step
        self._banned = list(banned)

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a sentence."""
        return self._start(beams=beams, max_length=max_length)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        logits, state = self._step(tokens[:, None], state)
        log_probs = logits[:, -1].float().log_softmax(-1)  # (B·W, V)
        log_probs[:, self._banned] = -torch.inf
        return log_probs, state
