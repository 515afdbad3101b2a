"""Language models: what comes next in a text, given all that came before."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from regard.attention.attend import at_least_float32
from regard.attention.cache import KeyValueCache
from regard.attention.masks import causal_window_mask
from regard.core.config import NonNegative
from regard.core.errors import ConfigError
from regard.core.module import Dropout, Embedding, Linear, Module
from regard.models.init import InitConfig, initialise
from regard.models.interfaces import Encoder, Memory, Output, State
from regard.models.recurrent import Cell, Recurrence, RecurrentConfig, num_tensors
from regard.models.transformer import PositionedStack, TransformerConfig, build_positions


class LanguageModel(Module, ABC):
    """Continues texts, token by token or all at once: a decoder without a source."""

    embedding: Embedding
    """What token ids are looked up in."""
    output: Linear
    """What turns the last states into logits."""
    is_recurrent: bool
    """Whether its state is all it knows of the past, so that long texts are read end to end."""
    max_length: int
    """Most tokens of a text; 0 = no limit."""

    @abstractmethod
    def start(self, batch: int, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token.

        Args:
            batch: Number of texts.
            beams: Hypotheses a text.
            max_length: Most tokens that will be read, if that is known.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and the next state.

        The given state stays as it is: it may be continued more than once.
        """

    def forward(self, tokens: Tensor) -> Output:
        """Read whole texts, token ids (B, T): one long step."""
        logits, _ = self.step(tokens, self.start(tokens.shape[0]))
        return Output(logits)


@dataclass(frozen=True, kw_only=True)
class TransformerLanguageConfig(TransformerConfig):
    """A stack of blocks with masked self-attention."""

    kind: Literal["transformer"] = "transformer"
    """What kind of language model this is."""
    window: NonNegative = 0
    """How many tokens each position sees, its own included; 0 = all that came before. With the
    window that it learns from, a text can go on for any length, in the same memory."""
    is_tied: bool = True
    """Share one matrix between the embedding and the output layer."""
    init: InitConfig = field(default_factory=InitConfig)
    """How the weights start."""


class TransformerLanguageModel(PositionedStack, LanguageModel):
    """Masked self-attention alone (Radford et al. 2018)."""

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
        """Return the state before the first token of so many texts."""
        if self.window and max_length is not None:
            max_length = min(max_length, 2 * self.window)
        return State(per_source={}, per_hypothesis=self.blocks.new_caches(max_length))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and the next state."""
        caches = [cache.fork() for cache in state.per_hypothesis]
        logits = self._run(tokens, caches)
        # Forks again: a checkpointed block appends to its own cache once more in the backward pass.
        kept = [cache.fork() for cache in caches]
        if self.window:
            for cache in kept:
                cache.keep_last(self.window - 1)
        return logits, State({}, kept)

    def forward(self, tokens: Tensor) -> Output:
        """Read whole texts, token ids (B, T): one long step."""
        return Output(self._run(tokens))

    def _run(self, tokens: Tensor, caches: Sequence[KeyValueCache] | None = None) -> Tensor:
        first, num_past = (caches[0].position, caches[0].length) if caches else (0, 0)
        states = self.embed(self.embedding(tokens) * self.scale, first=first)  # (B·W, T, D)
        mask, num_keys = None, num_past + tokens.shape[1]
        if 0 < self.window < num_keys:
            mask = causal_window_mask(
                tokens.shape[1], num_keys, window=self.window, device=tokens.device
            )[None]
        states = self.blocks(states, mask=mask, is_causal=True, caches=caches)
        return self.output(self.norm(states))


@dataclass(frozen=True, kw_only=True)
class RnnLanguageConfig(RecurrentConfig):
    """A stack of recurrent layers."""

    kind: Literal["rnn"] = "rnn"
    """What kind of language model this is."""
    cell: Cell = "lstm"
    """The recurrent cell."""
    num_layers: int = 2
    """Number of recurrent layers."""
    is_tied: bool = True
    """Share one matrix between the embedding and the output layer (Press and Wolf 2017)."""
    init: InitConfig = field(default_factory=InitConfig)
    """How the weights start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_tied and self.embedding_dim != self.dim:
            raise ConfigError(
                f"`embedding_dim` must equal `dim` ({self.dim}) where `is_tied` is true, but is "
                f"{self.embedding_dim}. Make them equal, or set `is_tied` to false."
            )


class RnnLanguageModel(LanguageModel):
    """A recurrent stack whose state is all it knows of the past (Mikolov et al. 2010)."""

    def __init__(self, config: RnnLanguageConfig, vocab_size: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, config.embedding_dim)
        self.recurrence = Recurrence(config, config.embedding_dim)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(config.dim, vocab_size)
        self.is_recurrent = True
        self.max_length = 0

    def start(self, batch: int, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token of so many texts."""
        zeros = self.embedding.weight.new_zeros(batch * beams, self.recurrence.dim)
        layer = (zeros,) * num_tensors(self.recurrence.cell)
        return State(per_source={}, per_hypothesis=(layer,) * self.recurrence.num_layers)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and the next state."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        states, layers = self.recurrence(embedded, state.per_hypothesis)
        return self.output(self.dropout(states)), State({}, layers)


LanguageModelConfig = TransformerLanguageConfig | RnnLanguageConfig
LANGUAGE_MODELS: dict[type, Callable[..., LanguageModel]] = {
    TransformerLanguageConfig: TransformerLanguageModel,
    RnnLanguageConfig: RnnLanguageModel,
}


def build_language_model(config: LanguageModelConfig, *, vocab_size: int) -> LanguageModel:
    """Build the language model that the settings describe, with fresh weights."""
    model = LANGUAGE_MODELS[type(config)](config, vocab_size)
    initialise(model, config.init)
    if config.is_tied:
        model.output.weight = model.embedding.weight
    return model


class LanguageReader(Encoder):
    """A language model that reads instead of writing: what it knows at each token is its state.

    The summary is the state of the last token, the one that has seen the whole text.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model
        self.memory_dim = model.output.in_features

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read whole texts, token ids (B, S), padded at the end, and return their `Memory`."""
        found: list[Tensor] = []
        hook = self.model.output.register_forward_pre_hook(lambda _, given: found.append(given[0]))
        try:
            self.model(values)
        finally:
            hook.remove()
        (states,) = found
        mask = mask.to(values.device)
        last = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, states.shape[-1])  # (B, 1, D)
        return Memory(states, mask, states.gather(1, last)[:, 0], tokens=values)


def next_log_probs(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the log-probability (B, T) of each label (B, T), computed in 32 bits at least."""
    wide = at_least_float32(logits)
    chosen = wide.gather(-1, labels[..., None]).squeeze(-1)  # (B, T)
    # One log-sum-exp instead of a whole table of log-probabilities: vocabularies are large.
    return chosen - wide.logsumexp(-1)
