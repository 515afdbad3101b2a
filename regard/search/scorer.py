"""What search asks: log-probabilities of the next token. A model is one answer to it."""

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
    """One encoder–decoder, over one batch of sentences.

    Args:
        model: The model, in evaluation mode.
        memory: What its encoder made of the sentences.
        banned: Tokens that may never be chosen, such as padding and the start token. Their
            share is not given to the others, so log-probabilities stay those of the model.
    """

    def __init__(self, model: EncoderDecoder, memory: Memory, *, banned: tuple[int, ...]) -> None:
        self.model = model
        self.memory = memory
        self.batch = memory.states.shape[0]
        self.device = memory.states.device
        self.banned = list(banned)

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a sentence."""
        return self.model.start(self.memory, beams=beams, max_length=max_length)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        return _step(self.model, tokens, state, banned=self.banned)


class LanguageScorer:
    """One language model, over so many texts.

    Args:
        model: The model, in evaluation mode.
        batch: Number of texts.
        banned: Tokens that may never be chosen, as with `ModelScorer`.
    """

    def __init__(self, model: LanguageModel, batch: int, *, banned: tuple[int, ...]) -> None:
        self.model = model
        self.batch = batch
        self.device = model.embedding.weight.device
        self.banned = list(banned)

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a text."""
        return self.model.start(self.batch, beams=beams, max_length=max_length)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        return _step(self.model, tokens, state, banned=self.banned)


def _step(
    model: EncoderDecoder | LanguageModel, tokens: Tensor, state: State, *, banned: list[int]
) -> tuple[Tensor, State]:
    logits, state = model.step(tokens[:, None], state)
    log_probs = logits[:, -1].float().log_softmax(-1)  # (B·W, V)
    log_probs[:, banned] = -torch.inf
    return log_probs, state
