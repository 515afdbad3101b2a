"""Copying: a decoder that may also point at a source token and write that one."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from regard.attention.attend import Attention, at_least_float32, masked_softmax, weighted_sum
from regard.attention.scores import ScaledDotScore
from regard.core.config import Config, NonNegativeFloat, Positive
from regard.core.module import Embedding, Linear
from regard.models.interfaces import Decoder, Memory, Output, State, by_sentence, repeat_rows


@dataclass(frozen=True, kw_only=True)
class NoCopyingConfig(Config):
    """Every token comes from the vocabulary."""

    kind: Literal["none"] = "none"
    """Whether and how source tokens are copied."""


@dataclass(frozen=True, kw_only=True)
class PointerConfig(Config):
    """A token comes from the vocabulary or from a place in the source."""

    kind: Literal["pointer"] = "pointer"
    """Whether and how source tokens are copied."""
    dim: Positive = 256
    """Width in which the decoder's states and the source are compared."""
    coverage: NonNegativeFloat = 0.0
    """Weight of the loss on looking at one place again; 0 = what was looked at is not kept."""


CopyingConfig = NoCopyingConfig | PointerConfig


class Copies(NamedTuple):
    """What a copy attention says; the weights come second, as with every attention."""

    generated: Tensor
    """(B·W, T, 1), the log-probability that the token comes from the vocabulary."""
    copied: Tensor
    """(B·W, T, S), the probability that it is copied from each place of the source."""
    coverage: Tensor
    """(B·W, S), how much each position has been attended to by now."""
    again: Tensor
    """(B·W, T), how much of the weights fell where they had been before."""


class CopyAttention(Attention):
    """Where a decoder would copy from, and how surely: (1 - p_gen) · weights.

    See et al. 2017, eq. 8: p_gen = sigmoid(w · [state; context]), the context being what is looked
    at. Source and states meet in one width with the scaled dot product.

    Args:
        query_dim: Width of the decoder's states.
        memory_dim: Width of the source's states.
        dim: Width in which they are compared.
    """

    def __init__(self, query_dim: int, memory_dim: int, *, dim: int) -> None:
        super().__init__()
        self.query_map = Linear(query_dim, dim, bias=False)
        self.key_map = Linear(memory_dim, dim, bias=False)
        self.score = ScaledDotScore(dim, dim)
        self.gate = Linear(query_dim + memory_dim, 1)

    def prepare(self, memory: Memory) -> dict[str, Tensor]:
        """Do once per sentence what does not depend on the decoder."""
        return {
            "keys": self.key_map(memory.states),
            "values": memory.states,
            "mask": _may_copy(memory),
        }

    def start(self, prepared: dict[str, Tensor], *, beams: int = 1) -> Tensor:
        """Return the coverage before the first step: zeros, (B·W, S)."""
        zeros = at_least_float32(torch.zeros_like(prepared["mask"], dtype=prepared["values"].dtype))
        return repeat_rows(zeros, beams)

    def forward(self, states: Tensor, prepared: dict[str, Tensor], coverage: Tensor) -> Copies:
        """Say for every state where it would copy from.

        Args:
            states: (B·W, T, D), of the decoder.
            prepared: What `prepare` returned.
            coverage: (B·W, S), how much each position was attended to before.
        """
        rows, length, _ = states.shape
        batch, num_source = prepared["mask"].shape
        scores = self.score(by_sentence(self.query_map(states), batch), prepared["keys"])
        scores = scores.reshape(rows, length, num_source)  # (B·W, T, S)
        mask = repeat_rows(prepared["mask"], rows // batch)[:, None]  # (B·W, 1, S)
        first = masked_softmax(scores, mask)
        after = coverage[:, None] + first.cumsum(1)
        before = torch.cat([coverage[:, None], after[:, :-1]], dim=1)
        weights = self.weigh_again(first, scores, mask, states=states, before=before)
        contexts = weighted_sum(by_sentence(weights, batch), prepared["values"])  # (B, W·T, D)
        contexts = contexts.reshape(rows, length, -1)  # (B·W, T, D)
        gate = at_least_float32(self.gate(torch.cat([states, contexts], dim=-1)))  # (B·W, T, 1)
        # Where there is nothing to copy, the vocabulary has it all.
        generated = logsigmoid(gate).masked_fill(~mask.any(-1, keepdim=True), 0.0)
        again = torch.minimum(weights, before).sum(-1)  # (B·W, T)
        return Copies(generated, weights * (-gate).sigmoid(), after[:, -1], again)

    def weigh_again(
        self, first: Tensor, scores: Tensor, mask: Tensor, *, states: Tensor, before: Tensor
    ) -> Tensor:
        """Return the weights that are copied with: here, those of the first look."""
        return first


class CoverageAttention(CopyAttention):
    """Looks twice: the second time, it knows where the looks before fell.

    A place's score changes by slope(state) times its coverage, the sum of all first looks of the
    steps before.
    """

    def __init__(self, query_dim: int, memory_dim: int, *, dim: int) -> None:
        super().__init__(query_dim, memory_dim, dim=dim)
        self.slope = Linear(query_dim, 1)

    def weigh_again(
        self, first: Tensor, scores: Tensor, mask: Tensor, *, states: Tensor, before: Tensor
    ) -> Tensor:
        """Return the weights of the second look.

        Args:
            first: (B·W, T, S), the weights of the first.
            scores: (B·W, T, S), of the first.
            mask: (B·W, 1, S), True = may be copied.
            states: (B·W, T, D), of the decoder.
            before: (B·W, T, S), the coverage.
        """
        return masked_softmax(scores, mask, at_least_float32(self.slope(states)) * before)


class PointerDecoder(Decoder):
    """Any decoder, with a pointer beside its vocabulary (See et al. 2017, "Get to the point").

    p(w) = p_gen · p_vocabulary(w) + (1 - p_gen) · Σ weights where the source has w (eq. 9), with
    one vocabulary for both sides: a name is copied piece by piece, and no word is unknown. What
    it returns as logits are log-probabilities already: a softmax leaves them as they are.

    It differs from the paper. The decoder keeps the attention it has, if any, and copies with one
    of its own, so that a transformer can copy as well. Coverage sums the first of two looks, and
    copying takes the second: nothing depends on the step before, and a whole target runs at once. A
    source's end token is never copied: where to stop is for the vocabulary to say.

    Args:
        inner: What writes; its last layer moves here, and it returns states from then on.
        config: How to copy.
        memory_dim: Width of the source's states.
    """

    def __init__(self, inner: Decoder, config: PointerConfig, *, memory_dim: int) -> None:
        super().__init__()
        self.output = inner.output
        self.inner = inner
        inner.output = nn.Identity()  # type: ignore[assignment]  # its states go out as they are
        attention = CoverageAttention if config.coverage else CopyAttention
        self.copying = attention(self.output.in_features, memory_dim, dim=config.dim)
        self.coverage = config.coverage

    @property
    def embedding(self) -> Embedding:  # type: ignore[override]  # the inner one's, not a second
        """What token ids are looked up in."""
        return self.inner.embedding

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a sentence."""
        inner = self.inner.start(memory, beams=beams, max_length=max_length)
        prepared = self.copying.prepare(memory)
        return State(
            per_source={"inner": inner.per_source, "source": prepared, "tokens": memory.tokens},
            per_hypothesis={
                "inner": inner.per_hypothesis,
                "coverage": self.copying.start(prepared, beams=beams),
            },
        )

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return log-probabilities (B·W, T, V) and the next state."""
        log_probs, state, _ = self._run(tokens, state)
        return log_probs, state

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Read a whole target, token ids (B, T) from the start token on: one long step.

        The coverage loss is Σ min(weights, coverage) (eq. 13) for each token, (B, T): which of
        them are padding, the caller knows.
        """
        log_probs, _, again = self._run(targets, self.start(memory))
        return Output(log_probs, {"coverage": self.coverage * again} if self.coverage else {})

    def _run(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        inner = State(state.per_source["inner"], state.per_hypothesis["inner"])
        states, inner = self.inner.step(tokens, inner)  # (B·W, T, D)
        copies = self.copying(states, state.per_source["source"], state.per_hypothesis["coverage"])
        log_probs = self._mix(states, copies, state.per_source["tokens"])
        per_hypothesis = {"inner": inner.per_hypothesis, "coverage": copies.coverage}
        return log_probs, State(state.per_source, per_hypothesis), copies.again

    def _mix(self, states: Tensor, copies: Copies, tokens: Tensor) -> Tensor:
        """Return the log-probability of every token, (B·W, T, V), in float32 at least."""
        generated = at_least_float32(self.output(states)).log_softmax(-1) + copies.generated
        rows, length, _ = generated.shape
        indices = repeat_rows(tokens, rows // len(tokens))[:, None].expand(-1, length, -1)
        copied = torch.zeros_like(generated).scatter_add(-1, indices, copies.copied)  # (B·W, T, V)
        # Never log 0, not even on the road not taken: its gradient would not be a number.
        floor = torch.finfo(copied.dtype).tiny
        both = torch.logaddexp(generated, copied.clamp(min=floor).log())
        return torch.where(copied > 0, both, generated)


def _may_copy(memory: Memory) -> Tensor:
    """Allow what is real and no end token: every source, and each of its parts, closes with one."""
    tokens = memory.tokens
    assert tokens is not None
    last = memory.mask.sum(1, keepdim=True).clamp(min=1) - 1  # (B, 1)
    return memory.mask & (tokens != tokens.gather(1, last))  # (B, S)
