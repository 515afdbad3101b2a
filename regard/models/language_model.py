"""Autoregressive language models: transformer and recurrent."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from regard.attention.attend import at_least_float32
from regard.attention.masks import causal_window_mask
from regard.core.config import NonNegative
from regard.core.dropout import Dropout
from regard.core.errors import ConfigError
from regard.core.module import Embedding, Linear, Module
from regard.models.init import InitConfig, initialize
from regard.models.interfaces import Encoder, Memory, Output, State
from regard.models.recurrent import Cell, Recurrence, RecurrentConfig, num_tensors
from regard.models.transformer import PositionedStack, TransformerConfig, build_positions


class LanguageModel(Module, ABC):
    """Base class of autoregressive language models: decoders without a source."""

    embedding: Embedding
    """Token embedding."""
    output: Linear
    """Output layer, from states to logits."""
    is_recurrent: bool
    """Whether the state has a constant size, so that it can be carried through long texts."""
    max_length: int
    """Maximum number of tokens of a text; 0 = no limit."""

    @abstractmethod
    def start(self, batch: int, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token.

        Args:
            batch: Number of texts.
            beams: Hypotheses per text.
            max_length: Maximum number of tokens, if known, to allocate caches.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state.

        The given state is not modified, so it can be continued more than once.
        """

    def forward(self, tokens: Tensor) -> Output:
        """Process full texts, token ids (B, T), in parallel."""
        logits, _ = self.step(tokens, self.start(tokens.shape[0]))
        return Output(logits)


@dataclass(frozen=True, kw_only=True)
class TransformerLanguageConfig(TransformerConfig):
    """Hyperparameters of a transformer language model."""

    kind: Literal["transformer"] = "transformer"
    """Kind of language model."""
    window: NonNegative = 0
    """Number of positions that each position attends to, itself included; 0 = all earlier ones.
    With a window, texts of any length are generated in constant memory."""
    is_tied: bool = True
    """Whether the embedding and the output layer share their weights."""
    init: InitConfig = field(default_factory=InitConfig)
    """Weight initialisation."""


class TransformerLanguageModel(PositionedStack, LanguageModel):
    """Causal transformer language model (Radford et al. 2018)."""

    def __init__(self, config: TransformerLanguageConfig, vocab_size: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, config.dim)
        self.build_layers(config, build_positions(config, is_causal=True))
        self.output = Linear(config.dim, vocab_size)
        self.scale = config.dim**0.5
        self.window = config.window
        self.is_recurrent = False
        self.max_length = config.max_length if config.positions == "learned" else 0

    def start(self, batch: int, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token of `batch` texts."""
        if self.window and max_length is not None:
            max_length = min(max_length, 2 * self.window)
        cache = self.blocks.new_cache(beams=beams, max_length=max_length)
        return State(per_source={}, per_hypothesis=cache)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        cache = state.per_hypothesis.fork(tokens.shape[1], tokens.device, window=self.window)
        states = cache.by_sentence(self._embed(tokens, first=state.per_hypothesis.length))
        states = self.blocks(
            states, mask=cache.mask, is_causal=cache.mask is None, caches=cache.caches
        )
        logits = self.output(self.norm(states)).view(*tokens.shape, -1)
        if self.window:
            cache = cache.keep_last(self.window - 1)
        return logits, State({}, cache)

    def forward(self, tokens: Tensor) -> Output:
        """Process full texts, token ids (B, T), in parallel."""
        mask, length = None, tokens.shape[1]
        if 0 < self.window < length:
            mask = causal_window_mask(length, length, window=self.window, device=tokens.device)[
                None
            ]
        states = self.blocks(self._embed(tokens), mask=mask, is_causal=True)
        return Output(self.output(self.norm(states)))

    def _embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """Embed tokens (B·W, T) at positions from `first` on, (B·W, T, D)."""
        return self.embed(self.embedding(tokens) * self.scale, first=first)


@dataclass(frozen=True, kw_only=True)
class RnnLanguageConfig(RecurrentConfig):
    """Hyperparameters of a recurrent language model."""

    kind: Literal["rnn"] = "rnn"
    """Kind of language model."""
    cell: Cell = "lstm"
    """The recurrent cell."""
    num_layers: int = 2
    """Number of recurrent layers."""
    is_tied: bool = True
    """Whether the embedding and the output layer share their weights (Press and Wolf 2017)."""
    init: InitConfig = field(default_factory=InitConfig)
    """Weight initialisation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_tied and self.embedding_dim != self.dim:
            raise ConfigError(
                f"`embedding_dim` must equal `dim` ({self.dim}) where `is_tied` is true, but is "
                f"{self.embedding_dim}. Make them equal, or set `is_tied` to false."
            )


class RnnLanguageModel(LanguageModel):
    """Recurrent language model (Mikolov et al. 2010)."""

    def __init__(self, config: RnnLanguageConfig, vocab_size: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, config.embedding_dim)
        self.recurrence = Recurrence(config, config.embedding_dim)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(config.dim, vocab_size)
        self.is_recurrent = True
        self.max_length = 0

    def start(self, batch: int, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token of `batch` texts."""
        zeros = self.embedding.weight.new_zeros(batch * beams, self.recurrence.dim)
        layer = (zeros,) * num_tensors(self.recurrence.cell)
        return State(per_source={}, per_hypothesis=(layer,) * self.recurrence.num_layers)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        states, layers = self.recurrence(embedded, state.per_hypothesis)
        return self.output(self.dropout(states)), State({}, layers)


LanguageModelConfig = TransformerLanguageConfig | RnnLanguageConfig
LANGUAGE_MODELS: dict[type, Callable[..., LanguageModel]] = {
    TransformerLanguageConfig: TransformerLanguageModel,
    RnnLanguageConfig: RnnLanguageModel,
}


def build_language_model(config: LanguageModelConfig, *, vocab_size: int) -> LanguageModel:
    """Build a language model with newly initialised weights."""
    model = LANGUAGE_MODELS[type(config)](config, vocab_size)
    initialize(model, config.init)
    if config.is_tied:
        model.output.weight = model.embedding.weight
    return model


class LanguageModelEncoder(Encoder):
    """Encoder that returns the last hidden states of a language model.

    The summary is the state of the last token, which depends on the full text.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model
        self.memory_dim = model.output.in_features

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode token ids (B, S), padded at the end, into a `Memory`."""
        captured: list[Tensor] = []
        hook = self.model.output.register_forward_pre_hook(
            lambda _, inputs: captured.append(inputs[0])
        )
        try:
            self.model(values)
        finally:
            hook.remove()
        (states,) = captured
        mask = mask.to(values.device)
        last = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, states.shape[-1])  # (B, 1, D)
        return Memory(states, mask, states.gather(1, last)[:, 0], tokens=values)


def token_log_probs(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the log-probability (B, T) of each label (B, T), in float32 or float64."""
    wide = at_least_float32(logits)
    chosen = wide.gather(-1, labels[..., None]).squeeze(-1)  # (B, T)
    # A log-sum-exp avoids a (B, T, V) tensor of log-probabilities.
    return chosen - wide.logsumexp(-1)
