"""Interfaces between encoders and decoders: `Memory`, `State`, `Output`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from regard.attention.cache import KeyValueCache
from regard.core.module import Embedding, Linear, Module

Nested: TypeAlias = "Tensor | KeyValueCache | tuple[Nested, ...] | list[Nested] | dict[str, Nested]"
"""Tensors and caches in any arrangement of tuples, lists and dicts."""

N = TypeVar("N")

LayerStates: TypeAlias = tuple[tuple[Tensor, ...], ...]
"""What a recurrent stack remembers: for each layer (h,) or, with LSTM cells, (h, c); (B, D)."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What every encoder ends in."""

    states: Tensor
    """(B, S, D), the annotations h_1 … h_S."""
    mask: Tensor
    """(B, S), True = a real position."""
    summary: Tensor
    """(B, D), the fixed context c = q(h_1 … h_S)."""
    values: Tensor | None = None
    """(B, S, D), what is read where attention falls, if that is not the states themselves."""
    final: LayerStates | None = None
    """What a recurrent decoder may start from, layer by layer."""
    tokens: Tensor | None = None
    """(B, S), the source ids, for copying."""
    layout: tuple[int, ...] | None = None
    """Rows and columns of the grid that the positions are, row by row, if they are one; a video
    has its frames before them."""
    losses: dict[str, Tensor] = field(default_factory=dict)
    """What this memory costs, by name: one number a source, (B,), already weighted."""


@dataclass(frozen=True, slots=True)
class State:
    """Where a decoder stands."""

    per_source: Any
    """Per sentence (a `Nested`): projected keys, values, masks. Never tiled, never reordered."""
    per_hypothesis: Any
    """Per hypothesis (a `Nested`), the batch first: what search reorders."""


@dataclass(frozen=True, slots=True)
class Emissions:
    """What an encoder's states say by themselves: at each, one token or nothing."""

    log_probs: Tensor
    """(B, S, V + 1); the last class is the blank, which says nothing."""
    lengths: Tensor
    """(B,), how many states are real."""

    @property
    def blank(self) -> int:
        """The class that says nothing."""
        return self.log_probs.shape[-1] - 1


@dataclass(frozen=True, slots=True)
class Output:
    """What a decoder says about a whole target."""

    logits: Tensor
    """(B, T, V)."""
    losses: dict[str, Tensor] = field(default_factory=dict)
    """Further terms of the loss, by name: a mean over tokens; (B, T), one number a token; or (B,),
    one number a source, which is added to the sum over its tokens."""
    reinforce: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    """Where something was drawn that is learned by its success: from the log-probabilities of the
    true tokens, these tokens and their mask, all (B, T), to one more term, (B, T). To be called
    once."""
    emissions: Emissions | None = None
    """What the encoder's states say by themselves, where they learn to."""


class Encoder(Module, ABC):
    """Turns values into a `Memory`."""

    memory_dim: int
    """Width of the states that a decoder sees."""
    num_joined: int = 1
    """Neighbouring source positions that share one state."""

    @abstractmethod
    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole source.

        Args:
            values: (B, S) token ids, or (B, C, Y, X) images.
            mask: (B, S), True = a real position; it may still lie on the host.
        """

    def groups(self, values: Tensor, mask: Tensor) -> Tensor | None:
        """Return the position of the memory that each source position went into, (B, S).

        Args:
            values: (B, S) token ids.
            mask: (B, S), True = a real position.

        Returns:
            Numbers from 0 on; what stands at padding means nothing. None = each has its own.
        """
        if self.num_joined == 1:
            return None
        numbers = torch.arange(mask.shape[1], device=values.device) // self.num_joined
        return numbers.expand(mask.shape)  # (B, S)


class TokenEncoder(Encoder):
    """Turns token ids into a `Memory`."""

    embedding: Embedding
    """What token ids are looked up in."""


class Decoder(Module, ABC):
    """Continues a target, token by token or all at once."""

    embedding: Embedding
    """What token ids are looked up in."""
    output: Linear
    """What turns the last states into logits."""

    @abstractmethod
    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token.

        Args:
            memory: The encoded sources.
            beams: Hypotheses a sentence.
            max_length: Most tokens that will be read, if that is known.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and the next state.

        The given state stays as it is: it may be continued more than once.
        """

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Read a whole target, token ids (B, T) from the start token on: one long step."""
        logits, _ = self.step(targets, self.start(memory))
        return Output(logits)


def map_tensors(nested: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to every tensor and every cache of a nested arrangement."""
    if isinstance(nested, Tensor | KeyValueCache):
        return change(nested)
    if isinstance(nested, dict):
        return {key: map_tensors(value, change) for key, value in nested.items()}
    return type(nested)(map_tensors(value, change) for value in nested)


def reorder(state: State, rows: Tensor) -> State:
    """Return the state whose hypothesis i is the old hypothesis `rows[i]`."""
    return State(state.per_source, map_tensors(state.per_hypothesis, lambda part: part[rows]))


def repeat_rows(nested: N, times: int) -> N:
    """Repeat every row of every tensor, so that a sentence has `times` hypotheses."""
    if times == 1:
        return nested
    repeated: N = map_tensors(nested, lambda tensor: tensor.repeat_interleave(times, dim=0))
    return repeated


def join_states(states: Sequence[State]) -> State:
    """Make one state of several: the halves stay halves, so that search can reorder it."""
    return State([state.per_source for state in states], [state.per_hypothesis for state in states])


def split_state(state: State) -> list[State]:
    """Return the states that `join_states` joined."""
    return [State(*halves) for halves in zip(state.per_source, state.per_hypothesis, strict=True)]


def by_sentence(tensor: Tensor, batch: int) -> Tensor:
    """Group hypotheses by their sentence: (B·W, T, ...) → (B, W·T, ...).

    Beams and target positions are then queries of one sentence, and its keys need no copy.
    """
    return tensor.reshape(batch, -1, *tensor.shape[2:])  # (B, W·T, ...)


def all_real(states: Tensor) -> Tensor:
    """Return the mask of states (B, S, D) without padding, (B, S)."""
    return states.new_ones(states.shape[:2], dtype=torch.bool)  # (B, S)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Average the real positions: (B, S, D) → (B, D)."""
    kept = mask[..., None].to(states.dtype)
    return (states * kept).sum(1) / kept.sum(1).clamp(min=1)  # (B, D)
