"""Interfaces between encoders and decoders: `Memory`, `State`, `Output`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from regard.attention.beam_cache import BeamCache
from regard.core.module import Embedding, Linear, Module

Nested: TypeAlias = "Tensor | BeamCache | tuple[Nested, ...] | list[Nested] | dict[str, Nested]"
"""Tensors and caches in any arrangement of tuples, lists and dicts."""

N = TypeVar("N")

LayerStates: TypeAlias = tuple[tuple[Tensor, ...], ...]
"""States of a recurrent stack: (h,) per layer or, with LSTM cells, (h, c), each (B, D)."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Output of an encoder."""

    states: Tensor
    """(B, S, D), the annotations h_1 … h_S."""
    mask: Tensor
    """(B, S), True = a real position."""
    summary: Tensor
    """(B, D), the fixed context c = q(h_1 … h_S)."""
    values: Tensor | None = None
    """(B, S, D), attention values, if they differ from the states."""
    final: LayerStates | None = None
    """Final states of a recurrent encoder, per layer."""
    tokens: Tensor | None = None
    """(B, S), source token ids, for copying."""
    layout: tuple[int, ...] | None = None
    """Rows and columns, if the positions are a grid, row by row; for a video, frames, rows and
    columns."""
    losses: dict[str, Tensor] = field(default_factory=dict)
    """Loss terms by name, (B,) each, already weighted."""


@dataclass(frozen=True, slots=True)
class State:
    """State of a decoder between steps."""

    per_source: Any
    """Tensors per sentence (a `Nested`): keys, values, masks. Never repeated or reordered."""
    per_hypothesis: Any
    """Tensors per hypothesis (a `Nested`), batch first. Search reorders them."""


@dataclass(frozen=True, slots=True)
class Emissions:
    """Output of a CTC head: log-probabilities of tokens and the blank token at each position."""

    log_probs: Tensor
    """(B, S, V + 1); the last class is the blank token."""
    lengths: Tensor
    """(B,), number of real positions."""

    @property
    def blank(self) -> int:
        """Index of the blank token."""
        return self.log_probs.shape[-1] - 1


@dataclass(frozen=True, slots=True)
class Output:
    """Output of a decoder for full targets."""

    logits: Tensor
    """(B, T, V)."""
    losses: dict[str, Tensor] = field(default_factory=dict)
    """Additional loss terms by name: a scalar, the mean over tokens; (B, T), one value per token;
    or (B,), one value per source, which is added to the sum over its tokens."""
    reinforce: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    """REINFORCE loss of sampled attention: a function of the log-probabilities of the labels, the
    labels and their mask, all (B, T), that returns a loss term (B, T). It must be called once."""
    emissions: Emissions | None = None
    """Output of the CTC head, if there is one."""


class Encoder(Module, ABC):
    """Base class of encoders: input values → `Memory`."""

    memory_dim: int
    """Width of the states of the memory."""
    num_joined: int = 1
    """Number of neighbouring source positions per state (subsampling factor)."""

    @abstractmethod
    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Encode a batch of sources.

        Args:
            values: (B, S) token ids, or (B, C, Y, X) images.
            mask: (B, S), True = a real position; may be on the CPU.
        """

    def memory_positions(self, values: Tensor, mask: Tensor) -> Tensor | None:
        """Map each source position to its position in the memory, (B, S).

        Args:
            values: (B, S) token ids.
            mask: (B, S), True = a real position.

        Returns:
            Positions, arbitrary at padding; None = the identity.
        """
        if self.num_joined == 1:
            return None
        positions = torch.arange(mask.shape[1], device=values.device) // self.num_joined
        return positions.expand(mask.shape)  # (B, S)


class TokenEncoder(Encoder):
    """Base class of encoders of token ids."""

    embedding: Embedding
    """Token embedding."""


class Decoder(Module, ABC):
    """Base class of decoders, incremental or in parallel over target positions."""

    embedding: Embedding
    """Token embedding."""
    output: Linear
    """Output layer, from states to logits."""

    @abstractmethod
    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token.

        Args:
            memory: The encoded sources.
            beams: Hypotheses per sentence.
            max_length: Maximum number of tokens, if known, to allocate caches.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state.

        The given state is not modified, so it can be continued more than once.
        """

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Process full targets, token ids (B, T) from the start token on, in parallel."""
        logits, _ = self.step(targets, self.start(memory))
        return Output(logits)


def map_tensors(nested: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to every tensor and every cache of a `Nested`."""
    if isinstance(nested, Tensor | BeamCache):
        return change(nested)
    if isinstance(nested, dict):
        return {key: map_tensors(value, change) for key, value in nested.items()}
    return type(nested)(map_tensors(value, change) for value in nested)


def reorder(state: State, rows: Tensor) -> State:
    """Return a state whose hypothesis i is hypothesis `rows[i]` of the same sentence."""

    def select(part: Tensor | BeamCache) -> Tensor | BeamCache:
        return part.reorder(rows) if isinstance(part, BeamCache) else part[rows]

    return State(state.per_source, map_tensors(state.per_hypothesis, select))


def widen(state: State, beams: int) -> State:
    """Return the state of several equal hypotheses per sentence, from that of a single one."""

    def repeat(part: Tensor | BeamCache) -> Tensor | BeamCache:
        if isinstance(part, BeamCache):
            return part.widen(beams)
        return part.repeat_interleave(beams, dim=0)

    return State(state.per_source, map_tensors(state.per_hypothesis, repeat))


def select_sentences(state: State, sentences: Tensor, *, beams: int) -> State:
    """Return the state of some sentences, (B,), each with its `beams` hypotheses."""
    first = sentences[:, None] * beams
    rows = (first + torch.arange(beams, device=sentences.device)).flatten()

    def select(part: Tensor | BeamCache) -> Tensor | BeamCache:
        return part.select(sentences) if isinstance(part, BeamCache) else part[rows]

    return State(
        map_tensors(state.per_source, lambda part: part[sentences]),
        map_tensors(state.per_hypothesis, select),
    )


def repeat_rows(nested: N, times: int) -> N:
    """Repeat each row of every tensor `times` times, for several hypotheses per sentence."""
    if times == 1:
        return nested
    repeated: N = map_tensors(nested, lambda tensor: tensor.repeat_interleave(times, dim=0))
    return repeated


def join_states(states: Sequence[State]) -> State:
    """Combine several states into one that search can reorder."""
    return State([state.per_source for state in states], [state.per_hypothesis for state in states])


def split_state(state: State) -> list[State]:
    """Return the states that `join_states` joined."""
    return [State(*parts) for parts in zip(state.per_source, state.per_hypothesis, strict=True)]


def by_sentence(tensor: Tensor, batch: int) -> Tensor:
    """Group hypotheses by sentence: (B·W, T, ...) → (B, W·T, ...).

    Beams and target positions become queries of one sentence, so its keys are not copied.
    """
    return tensor.reshape(batch, -1, *tensor.shape[2:])  # (B, W·T, ...)


def all_real(states: Tensor) -> Tensor:
    """Return the mask (B, S) of states (B, S, D) without padding."""
    return states.new_ones(states.shape[:2], dtype=torch.bool)  # (B, S)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Average over the real positions: (B, S, D) → (B, D)."""
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)  # (B, D)
