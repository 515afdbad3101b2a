"""Copy mechanism: a pointer-generator around any decoder."""

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
    """No copy mechanism."""

    kind: Literal["none"] = "none"
    """Kind of copy mechanism."""


@dataclass(frozen=True, kw_only=True)
class PointerConfig(Config):
    """Hyperparameters of the pointer-generator."""

    kind: Literal["pointer"] = "pointer"
    """Kind of copy mechanism."""
    dim: Positive = 256
    """Width of queries and keys."""
    coverage: NonNegativeFloat = 0.0
    """Weight of the coverage loss, which penalises repeated attention to a position; 0 = none."""


CopyingConfig = NoCopyingConfig | PointerConfig


class CopyOutput(NamedTuple):
    """Output of copy attention. The weights come second, as in every attention."""

    generated: Tensor
    """(B·W, T, 1), log-probability of generating from the vocabulary."""
    copied: Tensor
    """(B·W, T, S), probability of copying from each source position."""
    coverage: Tensor
    """(B·W, S), sum of the attention weights so far."""
    overlap: Tensor
    """(B·W, T), overlap of weights and coverage, Σ min(weights, coverage)."""


class CopyAttention(Attention):
    """Attention that computes copy probabilities (1 - p_gen) · weights.

    See et al. 2017, eq. 8: p_gen = sigmoid(w · [state; context]). The score is a scaled dot product
    of projected queries and keys.

    Args:
        query_dim: Width of the decoder states.
        memory_dim: Width of the source states.
        dim: Width of queries and keys.
    """

    def __init__(self, query_dim: int, memory_dim: int, *, dim: int) -> None:
        super().__init__()
        self.query_map = Linear(query_dim, dim, bias=False)
        self.key_map = Linear(memory_dim, dim, bias=False)
        self.score = ScaledDotScore(dim, dim)
        self.gate = Linear(query_dim + memory_dim, 1)

    def prepare(self, memory: Memory) -> dict[str, Tensor]:
        """Compute what does not depend on the decoder, once per sentence."""
        return {
            "keys": self.key_map(memory.states),
            "values": memory.states,
            "mask": _may_copy(memory),
        }

    def start(self, prepared: dict[str, Tensor], *, beams: int = 1) -> Tensor:
        """Return the coverage before the first step: zeros, (B·W, S)."""
        zeros = at_least_float32(torch.zeros_like(prepared["mask"], dtype=prepared["values"].dtype))
        return repeat_rows(zeros, beams)

    def forward(self, states: Tensor, prepared: dict[str, Tensor], coverage: Tensor) -> CopyOutput:
        """Compute the copy probabilities of each decoder state.

        Args:
            states: (B·W, T, D), decoder states.
            prepared: Output of `prepare`.
            coverage: (B·W, S), sum of the attention weights of earlier steps.
        """
        rows, length, _ = states.shape
        batch, num_source = prepared["mask"].shape
        scores = self.score(by_sentence(self.query_map(states), batch), prepared["keys"])
        scores = scores.reshape(rows, length, num_source)  # (B·W, T, S)
        mask = repeat_rows(prepared["mask"], rows // batch)[:, None]  # (B·W, 1, S)
        first = masked_softmax(scores, mask)
        after = coverage[:, None] + first.cumsum(1)
        before = torch.cat([coverage[:, None], after[:, :-1]], dim=1)
        weights = self.reweight(first, scores, mask, states=states, before=before)
        contexts = weighted_sum(by_sentence(weights, batch), prepared["values"])  # (B, W·T, D)
        contexts = contexts.reshape(rows, length, -1)  # (B·W, T, D)
        gate = at_least_float32(self.gate(torch.cat([states, contexts], dim=-1)))  # (B·W, T, 1)
        # If no position can be copied, p_gen is 1.
        generated = logsigmoid(gate).masked_fill(~mask.any(-1, keepdim=True), 0.0)
        overlap = torch.minimum(weights, before).sum(-1)  # (B·W, T)
        return CopyOutput(generated, weights * (-gate).sigmoid(), after[:, -1], overlap)

    def reweight(
        self, first: Tensor, scores: Tensor, mask: Tensor, *, states: Tensor, before: Tensor
    ) -> Tensor:
        """Return the final weights: by default, the first ones unchanged."""
        return first


class CoverageAttention(CopyAttention):
    """Copy attention in two passes, the second with coverage.

    In the second pass, slope(state) · coverage is added to the scores. The coverage is the sum of
    the first-pass weights of earlier steps.
    """

    def __init__(self, query_dim: int, memory_dim: int, *, dim: int) -> None:
        super().__init__(query_dim, memory_dim, dim=dim)
        self.slope = Linear(query_dim, 1)

    def reweight(
        self, first: Tensor, scores: Tensor, mask: Tensor, *, states: Tensor, before: Tensor
    ) -> Tensor:
        """Return the weights of the second pass.

        Args:
            first: (B·W, T, S), weights of the first pass.
            scores: (B·W, T, S), scores of the first pass.
            mask: (B·W, 1, S), True = may be copied.
            states: (B·W, T, D), decoder states.
            before: (B·W, T, S), coverage before each step.
        """
        return masked_softmax(scores, mask, at_least_float32(self.slope(states)) * before)


class PointerDecoder(Decoder):
    """Pointer-generator around any decoder (See et al. 2017, "Get to the point").

    p(w) = p_gen · p_vocabulary(w) + (1 - p_gen) · Σ weights of the source positions of w (eq. 9),
    with a joint vocabulary of subwords. The returned logits are log-probabilities, so a softmax
    does not change them.

    Differences from the paper: the copy attention is separate from the attention of the decoder,
    so any decoder can copy, including a transformer. Coverage sums the weights of the first of two
    passes, so a step does not depend on the previous one, and full targets are processed in
    parallel. The end token of a source is never copied.

    Args:
        inner: The decoder. Its output layer moves to this module, so that it returns states.
        config: The hyperparameters.
        memory_dim: Width of the source states.
    """

    def __init__(self, inner: Decoder, config: PointerConfig, *, memory_dim: int) -> None:
        super().__init__()
        self.output = inner.output
        self.inner = inner
        inner.output = nn.Identity()  # type: ignore[assignment]  # returns its states
        attention = CoverageAttention if config.coverage else CopyAttention
        self.copying = attention(self.output.in_features, memory_dim, dim=config.dim)
        self.coverage = config.coverage

    @property
    def embedding(self) -> Embedding:  # type: ignore[override]  # that of the inner decoder
        """Token embedding."""
        return self.inner.embedding

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
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
        """Process tokens (B·W, T); return log-probabilities (B·W, T, V) and the next state."""
        log_probs, state, _ = self._run(tokens, state)
        return log_probs, state

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Process full targets, token ids (B, T) from the start token on, in parallel.

        The coverage loss Σ min(weights, coverage) (eq. 13) is returned per token, (B, T), because
        only the caller can exclude padding.
        """
        log_probs, _, overlap = self._run(targets, self.start(memory))
        return Output(log_probs, {"coverage": self.coverage * overlap} if self.coverage else {})

    def _run(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        inner = State(state.per_source["inner"], state.per_hypothesis["inner"])
        states, inner = self.inner.step(tokens, inner)  # (B·W, T, D)
        copy_output = self.copying(
            states, state.per_source["source"], state.per_hypothesis["coverage"]
        )
        log_probs = self._mix(states, copy_output, state.per_source["tokens"])
        per_hypothesis = {"inner": inner.per_hypothesis, "coverage": copy_output.coverage}
        return log_probs, State(state.per_source, per_hypothesis), copy_output.overlap

    def _mix(self, states: Tensor, copy_output: CopyOutput, tokens: Tensor) -> Tensor:
        """Return the log-probabilities of all tokens, (B·W, T, V), in float32 or float64."""
        generated = at_least_float32(self.output(states)).log_softmax(-1) + copy_output.generated
        rows, length, _ = generated.shape
        indices = repeat_rows(tokens, rows // len(tokens))[:, None].expand(-1, length, -1)
        copied = torch.zeros_like(generated).scatter_add(
            -1, indices, copy_output.copied
        )  # (B·W, T, V)
        # Avoid log 0 even in the branch that is not selected: its gradient would be NaN.
        floor = torch.finfo(copied.dtype).tiny
        both = torch.logaddexp(generated, copied.clamp(min=floor).log())
        return torch.where(copied > 0, both, generated)


def _may_copy(memory: Memory) -> Tensor:
    """Return the mask of real positions without the end token, which ends every source and part."""
    tokens = memory.tokens
    assert tokens is not None
    last = memory.mask.sum(1, keepdim=True).clamp(min=1) - 1  # (B, 1)
    return memory.mask & (tokens != tokens.gather(1, last))  # (B, S)
